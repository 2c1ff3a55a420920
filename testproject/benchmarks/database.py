"""
The PostgreSQL database that a run works on, made for it and dropped at its end.

It lies on a server of the run's own that waits for the disk as in production, or on the server that ``DATABASE_URL``
names. Other databases of that server are not touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from testproject import settings
from testproject.localpg import DURABLE, LocalPostgres

from .errors import BenchmarkError

#: Checkpoints that fall into one side's run and not into the other's would be noise: each run begins behind one, and
#: there is room for the log of the longest. Everything else is as PostgreSQL comes.
OWN_SERVER = {**DURABLE, "max_wal_size": "4GB", "min_wal_size": "1GB", "checkpoint_timeout": "30min"}
DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")

#: Variables of this process that would change how fast, or on what, the measured processes run.
_NOT_INHERITED = ("DJANGO_", "WORKQUEUE", "PYTHON", "PG", "DATABASE_URL", "COV")


class Database:
    """An address, and what a conductor does there besides filling tables. One statement, one transaction."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._entry = settings.database(url)
        if not self._entry["ENGINE"].endswith("postgresql"):
            raise BenchmarkError(f"DATABASE_URL is {url!r}. Name a PostgreSQL server there, or unset it.")
        self._connection: psycopg.Connection | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a process finds the database: through Django, libpq or asyncpg."""
        names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
        values = {name: str(self._entry.get(key) or "") for name, key in names.items()}
        return {"DATABASE_URL": self.url, **{name: value for name, value in values.items() if value}}

    def connect(self, *, autocommit: bool = True) -> psycopg.Connection:
        """Open a connection of the caller's own."""
        keys = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
        given: dict[str, Any] = {name: self._entry.get(key) or None for name, key in keys.items()}
        return psycopg.connect(**given, autocommit=autocommit)

    def execute(self, statement: str | sql.Composable, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        """Execute a statement on the conductor's connection and return its rows, if it has any."""
        if self._connection is None:
            self._connection = self.connect()
        # LiteralString keeps strangers' text out of statements; here they are all constants of this package.
        cursor = self._connection.execute(statement, parameters)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Return the only value that a statement answers."""
        return self.execute(statement, parameters)[0][0]

    def truncate(self, *tables: str) -> None:
        """Empty tables and count their ids from 1 again."""
        names = sql.SQL(", ").join(map(sql.Identifier, tables))
        self.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(names))

    def tidy(self, *tables: str) -> None:
        """Give the planner the truth about tables, for peers need it, and leave it no cleaning to do meanwhile."""
        for table in tables:
            self.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))

    def checkpoint(self) -> None:
        """Write everything to disk now, so that it is not written during a run."""
        self.execute("CHECKPOINT")

    def wal_position(self) -> int:
        """Return how many bytes of write-ahead log there have been."""
        return int(self.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    @contextmanager
    def locked(self, table: str) -> Iterator[psycopg.Connection]:
        """
        Let nobody write to ``table`` until the connection that is yielded commits, or the block ends.

        Reading goes on. It is the starting line: whoever has been started stands at the first claim.
        """
        with self.connect(autocommit=False) as connection:
            connection.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(sql.Identifier(table)))
            yield connection

    def waiting_with(self, text: str) -> int:
        """Count the sessions that wait for a lock in a statement with ``text`` near its beginning."""
        statement = """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND position(%(text)s IN query) > 0
        """
        return int(self.value(statement, {"text": text}))

    def describe(self) -> dict[str, str]:
        """Return the server's version and how far it can be trusted to have written what it acknowledged."""
        shown = {name: str(self.value(f"SHOW {name}")) for name in ("server_version", *DURABILITY, "shared_buffers")}
        return {"postgresql" if name == "server_version" else name: value for name, value in shown.items()}

    def close(self) -> None:
        """Close the conductor's connection."""
        if self._connection is not None:
            self._connection.close()


@contextmanager
def scratch_database() -> Iterator[Database]:
    """Yield an empty database on the server of ``DATABASE_URL``, or on one that lives as long as the block."""
    if url := os.environ.get("DATABASE_URL"):
        with _scratch_on(url) as database:
            yield database
        return
    with LocalPostgres(OWN_SERVER) as server, _scratch_on(server.url) as database:
        yield database


@contextmanager
def _scratch_on(url: str) -> Iterator[Database]:
    name = f"dwq_benchmark_{os.getpid()}"
    server, database = Database(url), Database(_renamed(url, name))
    server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield database
    finally:
        database.close()
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        server.close()


def _renamed(url: str, name: str) -> str:
    """Return ``url`` with another database at the end of its path, which may begin with a socket's folder."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rpartition('/')[0]}/{name}"))


def plain_environment() -> dict[str, str]:
    """Return the environment of a measured process, without its database: debugging off, nothing of this one's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    return {
        **kept,
        "DEBUG": "false",
        "DJANGO_SETTINGS_MODULE": "testproject.settings",
        "PYTHONPATH": str(settings.BASE_DIR.parent),
    }
