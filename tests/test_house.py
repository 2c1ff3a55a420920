"""The house keeps its shape: who may import, write and speak SQL, and how large a part may grow."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "django_workqueue"
SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("django_workqueue", "testproject")
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)
TESTS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py"))
OUTSIDE_STORE = [path for path in SOURCES if path.startswith("django_workqueue/") and "/store/" not in path]

#: Calls that write whatever they are called on: no other object in the package has methods of these names.
WRITES = {"bulk_create", "bulk_update", "create", "delete", "get_or_create", "save", "update_or_create"}
WRITES |= {f"a{name}" for name in WRITES}

#: Dictionaries and digests have ``update`` too; a queryset is known by what leads to it.
UPDATES = {"update", "aupdate"}
QUERYSET = re.compile(r"\bobjects\b|queryset|\.(filter|exclude|using|all|order_by)\(")

SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM|PRAGMA\s+\w|LISTEN\s+\S|NOTIFY\s+\S|pg_\w+\()",
    re.DOTALL,
)
#: Names of modules that say nothing about what is inside, and so end up holding everything.
VAGUE = {"base_utils", "common", "helper", "helpers", "misc", "tools", "util", "utils"}

MAX_SOURCE_LINES, MAX_TEST_LINES = 350, 500
MEDIAN_FUNCTION, P90_FUNCTION, MAX_FUNCTION = 8, 25, 60


def parse(path: str) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse((ROOT / path).read_text())


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    """Yield every method call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node, node.func


def is_write(method: ast.Attribute) -> bool:
    """Tell whether a method call changes rows."""
    if method.attr in UPDATES:
        return bool(QUERYSET.search(ast.unparse(method.value)))
    return method.attr in WRITES and not ast.unparse(method.value).startswith("super()")


def docstrings(tree: ast.AST) -> set[int]:
    """Return the ids of the constants that are documentation: a string that stands alone is never run."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def statements(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the string constants that hold SQL."""
    prose = docstrings(tree)
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in prose and SQL.search(node.value):
            yield node


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, source: list[str]) -> int:
    """Return how many lines of a function are code: neither docstring nor comment nor blank."""
    prose = set()
    if ast.get_docstring(function, clean=False) is not None:
        prose = set(range(function.body[0].lineno, function.body[0].end_lineno + 1))
    return sum(
        number not in prose and bool(text.strip()) and not text.strip().startswith("#")
        for number, text in enumerate(source[function.lineno - 1 : function.end_lineno], function.lineno)
    )


def function_sizes() -> dict[str, int]:
    """Return the code lines of every function by its place."""
    sizes = {}
    for path in SOURCES:
        source = (ROOT / path).read_text().splitlines()
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                sizes[f"{path}:{node.lineno} {node.name}"] = code_lines(node, source)
    return sizes


def test_import_contracts_hold():
    """A file imports only from the floors below it, and only worker/ knows threads, processes and signals."""
    program = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", OUTSIDE_STORE)
def test_rows_are_written_in_the_store_alone(path):
    """A write elsewhere would pass by the fence that refuses a worker whose lease is lost."""
    found = [f"line {call.lineno}: {ast.unparse(method)}" for call, method in calls(parse(path)) if is_write(method)]

    assert not found


@pytest.mark.parametrize("path", OUTSIDE_STORE)
def test_sql_is_spoken_in_the_store_alone(path):
    """SQL elsewhere would be right on one database only, and nobody would look for it there."""
    tree = parse(path)
    found = [f"line {node.lineno}: {node.value.strip()[:60]}" for node in statements(tree)]
    found += [f"line {call.lineno}: {ast.unparse(method)}" for call, method in calls(tree) if method.attr == "cursor"]

    assert not found


@pytest.mark.parametrize("path", SOURCES)
def test_module_is_named_for_its_content(path):
    """A module called utils grows without end, for everything fits its name."""
    assert Path(path).stem not in VAGUE


@pytest.mark.parametrize(
    ("path", "limit"), [*((p, MAX_SOURCE_LINES) for p in SOURCES), *((p, MAX_TEST_LINES) for p in TESTS)]
)
def test_file_can_be_read_in_one_sitting(path, limit):
    """A longer file has more than one subject: split it."""
    assert len((ROOT / path).read_text().splitlines()) <= limit


def test_functions_are_small():
    """A long function does more than one thing: give its parts names."""
    sizes = function_sizes()
    longest = sorted(sizes, key=sizes.__getitem__, reverse=True)

    assert {place: sizes[place] for place in longest if sizes[place] > MAX_FUNCTION} == {}
    assert statistics.median(sizes.values()) <= MEDIAN_FUNCTION
    assert sizes[longest[len(longest) // 10]] <= P90_FUNCTION
