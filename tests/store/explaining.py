"""Asking PostgreSQL how it carries out a statement, and reading its answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection
from psycopg import ClientCursor, sql

from django_workqueue.store.session import Session

VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE")
PLACEHOLDER = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True)
class Plan:
    """The plan of one statement, with what it really did."""

    statement: str
    root: dict[str, Any]

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Yield every node of the tree."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.get("Plans", [])

    def indexes(self, table: str) -> set[str]:
        """Return the names of the indexes by which rows of ``table`` are found."""
        return {
            node["Index Name"] for node in self.nodes() if node.get("Relation Name") == table and "Index Name" in node
        }

    @property
    def kinds(self) -> set[str]:
        """The kinds of node."""
        return {node["Node Type"] for node in self.nodes()}

    @property
    def discarded(self) -> int:
        """The largest number of rows that one node read only to throw them away."""
        return max(int(node.get("Rows Removed by Filter", 0) * node["Actual Loops"]) for node in self.nodes())

    @property
    def buffers(self) -> int:
        """Pages of tables and indexes that were looked at."""
        return self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"]


@contextmanager
def explained(monkeypatch, *tables: str, generic: bool = False) -> Iterator[list[Plan]]:
    """
    Collect the plans of the statements on ``tables``, both of the worker's session and of the ORM.

    Each is carried out twice: once to be explained, in a savepoint that is rolled back, and once in earnest.
    ``generic`` plans without the parameters' values, as the server does once a prepared statement was used some times.
    """
    plans: list[Plan] = []
    real = Session.rows

    def rows(self, statement, parameters):
        if any(table in statement for table in tables):
            plans.append(explain(statement, parameters, generic=generic))
        return real(self, statement, parameters)

    def execute(run, statement, parameters, many, context):
        if any(table in statement for table in tables) and statement.lstrip().startswith((*VERBS, "WITH")):
            plans.append(explain(statement, parameters))
        return run(statement, parameters, many, context)

    with monkeypatch.context() as patch, connection.execute_wrapper(execute):
        patch.setattr(Session, "rows", rows)
        yield plans


def explain(statement: str, parameters: Any, *, generic: bool = False) -> Plan:
    """Carry out a statement, take back what it did, and return its plan."""
    with connection.connection.cursor() as cursor:
        cursor.execute("SAVEPOINT asked")
        try:
            question = _prepared(cursor, statement, parameters or {}) if generic else _inlined(statement, parameters)
            cursor.execute("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + question)
            [(answer,)] = cursor.fetchall()
        finally:
            cursor.execute("ROLLBACK TO SAVEPOINT asked")
        if generic:
            cursor.execute("DEALLOCATE asked")
    return Plan(statement, answer[0]["Plan"])


def _inlined(statement: str, parameters: Any) -> str:
    """Write the values into the statement, as Django's cursor does."""
    return ClientCursor(connection.connection).mogrify(statement, parameters)


def _prepared(cursor: Any, statement: str, parameters: Mapping[str, Any]) -> str:
    """Prepare a statement for a generic plan and return the EXECUTE that runs it."""
    names = list(dict.fromkeys(PLACEHOLDER.findall(statement)))
    text = PLACEHOLDER.sub(lambda match: f"${names.index(match[1]) + 1}", statement).replace("%%", "%")
    types = ", ".join("interval" if isinstance(parameters[name], timedelta) else "unknown" for name in names)
    cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    cursor.execute(f"PREPARE asked{f' ({types})' if names else ''} AS {text}")
    values = ", ".join(sql.Literal(parameters[name]).as_string(connection.connection) for name in names)
    return f"EXECUTE asked{f'({values})' if names else ''}"
