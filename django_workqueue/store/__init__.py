"""The only room that writes rows, opens transactions or knows a database's name."""

from __future__ import annotations

from django.db import connections

from ..conf import get_settings
from .orm import OrmStore as Store

__all__ = ["Store", "store_for"]


def store_for(alias: str | None = None, *, pooled: bool = False) -> Store:
    """
    Return the store on the database ``alias``, by default the one that ``WORKQUEUE['DATABASE']`` names.

    ``pooled`` is for a worker behind a transaction pooler.
    """
    alias = alias or get_settings().database
    match connections[alias].vendor:
        case "postgresql":
            from .postgresql import PostgresStore  # noqa: PLC0415 - psycopg is there only where PostgreSQL is used

            return PostgresStore(alias, pooled=pooled)
        case "sqlite":
            from .sqlite import SqliteStore  # noqa: PLC0415 - beside its twin

            return SqliteStore(alias)
        case _:
            return Store(alias)
