"""What a user gets from the wheel, and what they must not get with it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from validate_pyproject import api

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "django_workqueue"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    """Build the wheel with the installed backend, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


def packaged(wheel: zipfile.ZipFile) -> set[str]:
    """Return the names in the wheel, less its metadata."""
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_wheel_holds_every_file_of_the_package(wheel):
    """Templates, static files, migrations, translations and py.typed are useless in the repository alone."""
    present = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert packaged(wheel) == present


@pytest.mark.parametrize("name", ["py.typed", "migrations/0001_initial.py"])
def test_wheel_holds_what_installing_needs(wheel, name):
    """Without py.typed the annotations are ignored, without migrations there are no tables."""
    assert f"django_workqueue/{name}" in packaged(wheel)


def test_wheel_holds_the_licence(wheel):
    """Who redistributes the wheel must be able to pass the licence on."""
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_pyproject_is_valid():
    """A misspelt key in the project table is ignored silently by installers."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        api.Validator()(tomllib.load(file))


def test_pytest_plugin_loads_without_django():
    """Every pytest run in the environment loads the plugin, also where Django has no settings."""
    program = (
        "import sys, django_workqueue.testing.pytest_plugin\n"
        "sys.exit(', '.join(sorted(name for name in sys.modules if name.split('.')[0] == 'django')) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={}, check=False, capture_output=True, text=True
    )

    assert done.returncode == 0, f"the plugin imports {done.stderr}"
