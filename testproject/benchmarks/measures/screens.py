"""
``screens.*``: what the admin's pages and the commands' outputs take at a million live and five million finished jobs.

Each page over the same with a thousand rows of everything, by what the planner knows: ``fresh`` after an ANALYZE,
``stale`` with the statistics of tables that were empty. ``statements`` are those of one request, and ``pages`` what it
looks at in the database, eight kilobytes each: unlike a time, that does not depend on what else the machine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import sql

from ..bench import Bench
from ..children import ask
from ..database import Database
from ..figures import Figure, Readings, Trial, at_most
from ..month import FULL, THOUSAND
from ..rows import own_tables
from ..screens import names

RATIO, STATEMENTS = 1.5, 15
REPEAT = 3
PAGES_READ = 60_000
KINDS = ("thousand", "stale", "fresh")
#: Looks at one another through a dozen windows: more statements, however many rows there are.
OF_MANY_PARTS = ("queue.overview", "metrics.json", "command.stats")


def look(bench: Bench) -> Readings:
    """Fill, and ask for every page: with few rows, with all and no idea of them, and with all that is known."""
    database = bench.database
    readings: dict[str, float] = {}
    with left_alone(database):
        THOUSAND.fill(database)
        database.tidy(*own_tables())
        readings |= _seen(bench, "thousand")
        forget(database)
        FULL.times(bench.scale).fill(database)
        readings |= _seen(bench, "stale")
        database.tidy(*own_tables())
        readings |= _seen(bench, "fresh")
    return readings


@contextmanager
def left_alone(database: Database) -> Iterator[None]:
    """Begin and end with empty tables, whose statistics only this block changes."""
    tables = own_tables()
    database.truncate(*tables)
    for table in tables:
        database.execute(sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = off)").format(sql.Identifier(table)))
    try:
        yield
    finally:
        database.truncate(*tables)
        for table in tables:
            database.execute(sql.SQL("ALTER TABLE {} RESET (autovacuum_enabled)").format(sql.Identifier(table)))


def forget(database: Database) -> None:
    """Empty the tables as a queue that was worked off is empty: every estimate is one row from now on."""
    for table in own_tables():
        database.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
    database.tidy(*own_tables())


def _seen(bench: Bench, kind: str) -> dict[str, float]:
    seen = ask(bench.environment, "screens", "--repeat", str(bench.sized(REPEAT, least=1)))
    return {
        f"screens.{name}.{reading}": value
        for name, (milliseconds, statements, pages) in seen.items()
        for reading, value in ((kind, milliseconds), ("statements", statements), ("pages", pages))
    }


def _figures(name: str) -> Iterator[Figure]:
    for kind in ("fresh", "stale"):
        yield Figure(
            name=f"screens.{name}.{kind}",
            over=f"screens.{name}.{kind}",
            under=f"screens.{name}.thousand",
            unit="ms",
            target=at_most(RATIO),
        )
    most = None if name in OF_MANY_PARTS else at_most(STATEMENTS)
    yield Figure(name=f"screens.{name}.statements", over=f"screens.{name}.statements", unit="", target=most)
    yield Figure(name=f"screens.{name}.pages", over=f"screens.{name}.pages", unit="", target=at_most(PAGES_READ))


PAGES = names()
TRIALS = (
    Trial(
        "screens", look, tuple(f"screens.{name}.{kind}" for name in PAGES for kind in (*KINDS, "statements", "pages"))
    ),
)
FIGURES = tuple(figure for name in PAGES for figure in _figures(name))
