"""Dead letters by cause: a walk along the index of fingerprints, a few descents for each group and no scan."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import DateTimeField, ExpressionWrapper, F

from ..domain.scope import Scope
from ..models import DeadLetter
from .base import BaseStore

DEAD = DeadLetter._meta.db_table

# Every inner query is one descent, but for the count, which reads up to its cap: plain SQL that all databases speak.
# The ends of a group are found by an inequality: with an equality the order would be that of the newest letters too,
# and the planner might go through those of all groups for one of this.
GROUPS = f"""
WITH RECURSIVE walk(fingerprint, step) AS (
    SELECT (SELECT letter.fingerprint FROM {DEAD} letter ORDER BY letter.fingerprint LIMIT 1), 1
    UNION ALL
    SELECT (SELECT letter.fingerprint FROM {DEAD} letter WHERE letter.fingerprint > walk.fingerprint
            ORDER BY letter.fingerprint LIMIT 1),
           step + 1
    FROM walk WHERE walk.fingerprint IS NOT NULL AND step < %(most)s),
seen AS (
    SELECT walk.fingerprint,
           (SELECT letter.died_at FROM {DEAD} letter WHERE letter.fingerprint >= walk.fingerprint
            ORDER BY letter.fingerprint, letter.died_at DESC, letter.id DESC LIMIT 1) AS last_at
    FROM walk WHERE walk.fingerprint IS NOT NULL),
page AS (SELECT fingerprint, last_at FROM seen ORDER BY last_at DESC, fingerprint LIMIT %(limit)s OFFSET %(offset)s)
SELECT page.fingerprint,
       (SELECT letter.id FROM {DEAD} letter WHERE letter.fingerprint >= page.fingerprint
        ORDER BY letter.fingerprint, letter.died_at DESC, letter.id DESC LIMIT 1),
       (SELECT letter.id FROM {DEAD} letter WHERE letter.fingerprint <= page.fingerprint
        ORDER BY letter.fingerprint DESC, letter.died_at, letter.id LIMIT 1),
       (SELECT count(*) FROM (SELECT 1 FROM {DEAD} letter WHERE letter.fingerprint = page.fingerprint
                              LIMIT %(cap)s) counted)
FROM page ORDER BY page.last_at DESC, page.fingerprint
"""

# No index over letters begins with the tenant, so those of some are looked for among the last that died of all.
GROUPS_OF = f"""
SELECT fingerprint, id, oldest, size FROM (
    SELECT recent.fingerprint, recent.id, recent.died_at,
           first_value(recent.id) OVER (PARTITION BY fingerprint ORDER BY recent.died_at, recent.id) AS oldest,
           row_number() OVER (PARTITION BY fingerprint ORDER BY recent.died_at DESC, recent.id DESC) AS place,
           count(*) OVER (PARTITION BY fingerprint) AS size
    FROM (SELECT letter.fingerprint, letter.id, letter.died_at, letter.tenant FROM {DEAD} letter
          ORDER BY letter.died_at DESC, letter.id DESC LIMIT %(window)s) recent
    WHERE recent.tenant IN (%(tenants)s)) ranked
WHERE place = 1 ORDER BY died_at DESC, fingerprint LIMIT %(limit)s OFFSET %(offset)s
"""

# One bounded walk along the index for each group.
DEATHS = f"""
SELECT * FROM (SELECT letter.fingerprint, letter.died_at FROM {DEAD} letter
               WHERE letter.fingerprint = %s AND letter.died_at > %s
               ORDER BY letter.died_at DESC, letter.id DESC LIMIT {{most:d}}) part
"""


class DeadGroupRow(NamedTuple):
    """One group: the ids of its newest and oldest letters, and how many it has, up to the cap."""

    fingerprint: str
    newest: UUID
    oldest: UUID
    size: int


class Grouping(BaseStore):
    """Reads about groups of dead letters."""

    def dead_groups(self, *, limit: int, offset: int, most: int, cap: int) -> list[DeadGroupRow]:
        """
        Return ``limit`` groups behind ``offset``, those that grew last first, each counted up to ``cap``.

        Only the first ``most`` fingerprints are walked. The plan is pinned: the statistics of a table that was empty
        an hour ago make a scan look cheap.
        """
        return self._groups(GROUPS, {"limit": limit, "offset": offset, "most": most, "cap": cap})

    def dead_groups_of(self, scope: Scope, *, limit: int, offset: int, window: int) -> list[DeadGroupRow]:
        """Return groups of the letters that a limited ``scope`` has among the ``window`` that died last of all."""
        names = {f"tenant_{number}": name for number, name in enumerate(sorted(scope.tenants or ()))}
        if not names:
            return []
        statement = GROUPS_OF.replace("%(tenants)s", ", ".join(f"%({name})s" for name in names))
        return self._groups(statement, {"limit": limit, "offset": offset, "window": window, **names})

    def _groups(self, statement: str, parameters: dict[str, Any]) -> list[DeadGroupRow]:
        with self.transaction():
            self.pin()
            with self.connection.cursor() as cursor:
                cursor.execute(statement, parameters)
                rows = cursor.fetchall()
        return [DeadGroupRow(mark, _id(newest), _id(oldest), count) for mark, newest, oldest, count in rows]

    def deaths(self, fingerprints: Sequence[str], since: datetime, most: int) -> dict[str, list[datetime]]:
        """Return when the newest letters of each group died, after ``since`` and ``most`` of each: one statement."""
        found: dict[str, list[datetime]] = {each: [] for each in fingerprints}
        if found:
            field = DeadLetter._meta.get_field("died_at")
            moment = field.get_db_prep_value(since, self.connection)
            statement = " UNION ALL ".join([DEATHS.format(most=most)] * len(found))
            with self.transaction():
                self.pin()
                with self.connection.cursor() as cursor:
                    cursor.execute(statement, [value for each in found for value in (each, moment)])
                    for fingerprint, died_at in cursor.fetchall():
                        found[fingerprint].append(self._read_moment(died_at))
        return found

    def _read_moment(self, stored: Any) -> datetime:
        """Return a time as the ORM would read it: SQLite has it as text."""
        expression = ExpressionWrapper(F("died_at"), DateTimeField())
        for convert in self.connection.ops.get_db_converters(expression):
            stored = convert(stored, expression, self.connection)
        moment: datetime = stored
        return moment


def _id(stored: UUID | str) -> UUID:
    return stored if isinstance(stored, UUID) else UUID(stored)
