"""A package ``shop`` whose modules are what a page of the documentation shows."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from django_workqueue.domain import registry, timetables
from django_workqueue.lifecycle import terms

from .pages import blocks

FROM_THE_PROJECT = {"__init__": "", "models": "testproject.shop.models", "forms": "testproject.shop.forms"}


def forget(package: str) -> None:
    """Forget the modules of ``package``, and the tasks in them."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    registry.resolve.cache_clear()
    terms.terms_of.cache_clear()
    importlib.invalidate_caches()


def write_shop(folder: Path, page: str) -> list[str]:
    """Write the page's files, and what they take from the test project; return the names of the page's modules."""
    for name, source in FROM_THE_PROJECT.items():
        (folder / f"{name}.py").write_text(f"from {source} import *\n" if source else "")
    names = []
    for block in blocks(page, "python"):
        if block.file.startswith("shop/"):
            path = folder.parent / block.file
            earlier = path.read_text() + "\n\n" if path.exists() and block.remark == "continued" else ""
            path.write_text(earlier + block.text)
            names.append(path.stem)
    return list(dict.fromkeys(names))


@pytest.fixture
def make_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, ModuleType]]]:
    """Return a function that imports what a page shows and returns the modules by name."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(timetables, "_declared", {})

    def make(page: str) -> dict[str, ModuleType]:
        forget("shop")
        return {name: importlib.import_module(f"shop.{name}") for name in write_shop(folder, page)}

    yield make
    forget("shop")
