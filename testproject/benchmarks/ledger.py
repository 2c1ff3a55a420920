"""
A ledger that the database itself keeps of every claim and every ending, by triggers, and the books made from it.

The queue knows nothing of it, so that it can be held against what the queue says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection

from django_workqueue.domain.states import FailureKind
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Lease

CLAIM, BACK, GONE, FINISHED, DEAD = "claim", "back", "gone", "finished", "dead"
UNCOUNTED = {FailureKind.INTERRUPTED, FailureKind.UNKNOWN_TASK}

Claim = tuple[str, int]
"""A job and the lease under which it was claimed."""

TABLE = "CREATE TABLE survival_ledger (event text, job text, lease bigint, counted boolean)"
NOTE = "INSERT INTO survival_ledger VALUES ({values})"
#: Table, event of the database, condition, and what is noted.
TRIGGERS = {
    "claimed": (Job, "UPDATE", "NEW.state = 'leased'", "'claim', NEW.id, NEW.lease_id, NULL"),
    "put_back": (
        Job,
        "UPDATE",
        "OLD.state = 'leased' AND NEW.state <> 'leased'",
        "'back', OLD.id, OLD.lease_id, NEW.attempts = OLD.attempts",
    ),
    "gone": (Job, "DELETE", "OLD.state = 'leased'", "'gone', OLD.id, OLD.lease_id, NULL"),
    "finished": (FinishedJob, "INSERT", "NEW.id IS NOT NULL", "'finished', NEW.id, NULL, NULL"),
    "dead": (DeadLetter, "INSERT", "NEW.id IS NOT NULL", "'dead', NEW.id, NULL, NULL"),
}


def open_ledger() -> None:
    """Make the ledger's table and triggers."""
    with connection.cursor() as cursor:
        cursor.execute(TABLE)
        for name, (model, event, condition, values) in TRIGGERS.items():
            for statement in _trigger(f"survival_{name}", model._meta.db_table, event, condition, values):
                cursor.execute(statement)


def _trigger(name: str, table: str, event: str, condition: str, values: str) -> Iterator[str]:
    note = NOTE.format(values=values)
    head = f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW WHEN ({condition})"
    if connection.vendor == "sqlite":
        yield f"{head} BEGIN {note}; END"
        return
    yield f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {note}; RETURN NULL; END $$"
    yield f"{head} EXECUTE FUNCTION {name}()"


@dataclass(slots=True)
class Books:
    """What became of the accepted jobs. ``wrongs`` must be empty."""

    accepted: int
    places: Counter[str] = field(default_factory=Counter)
    claims: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    wrongs: list[str] = field(default_factory=list)

    def require(self, what: str, offenders: Iterable[object]) -> None:
        """Note as a wrong that there are any ``offenders``, and name the first."""
        found = sorted(map(str, offenders))
        if found:
            self.wrongs.append(f"{len(found)} {what}, first: {found[0]}")


def balance(accepted: Iterable[str]) -> Books:
    """Hold the rows of the queue against the ledger, and return the books."""
    ids = set(accepted)
    events = _events()
    books = Books(accepted=len(ids), claims=len(events[CLAIM]))
    _check_places(books, ids)
    _check_endings(books, ids, events)
    _check_claims(books, events)
    _check_failures(books, events)
    return books


def _events() -> dict[str, list[tuple[Claim, bool]]]:
    """Return the ledger's entries by kind: the claim that each is about, and whether its attempt counts."""
    events = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute("SELECT event, job, lease, counted FROM survival_ledger")
        for event, job, lease, counted in cursor.fetchall():
            events[event].append(((str(UUID(job)), lease or 0), bool(counted)))
    return events


def _check_places(books: Books, ids: set[str]) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for model in (Job, FinishedJob, DeadLetter):
        for pk in model._default_manager.values_list("pk", flat=True):
            places[str(pk)].append(model._meta.model_name or "")
    books.places = Counter(place for found in places.values() for place in found)
    books.require("jobs lost", ids - places.keys())
    books.require("jobs that nobody enqueued", places.keys() - ids)
    books.require("jobs in two places", (pk for pk, found in places.items() if len(found) > 1))
    books.require("jobs that never ended", (pk for pk, found in places.items() if "job" in found))
    books.require("leases left behind", Lease.objects.values_list("pk", flat=True))


def _check_endings(books: Books, ids: set[str], events: dict[str, list[tuple[Claim, bool]]]) -> None:
    endings = Counter(job for (job, _), _ in (*events[FINISHED], *events[DEAD]))
    books.require("jobs that ended twice", (job for job, count in endings.items() if count > 1))
    books.require("jobs without an ending in the ledger", ids - endings.keys())


def _check_claims(books: Books, events: dict[str, list[tuple[Claim, bool]]]) -> None:
    """Every claim has one ending: its job was put back, or left the live table for good."""
    claims = Counter(claim for claim, _ in events[CLAIM])
    ends = Counter(claim for claim, _ in (*events[BACK], *events[GONE]))
    books.require("claims made twice", (claim for claim, count in claims.items() if count > 1))
    books.require("claims ended more than once", (claim for claim, count in ends.items() if count > 1))
    books.require("claims without an end", claims.keys() - ends.keys())
    books.require("ends without a claim", ends.keys() - claims.keys())


def _check_failures(books: Books, events: dict[str, list[tuple[Claim, bool]]]) -> None:
    """Every attempt that counted and did not succeed has one Failure row, and no other attempt has one that counts."""
    died = {job for (job, _), _ in events[DEAD]}
    due = {claim for claim, counted in events[BACK] if counted} | {
        claim for claim, _ in events[GONE] if claim[0] in died
    }
    rows = list(Failure.objects.values_list("job_id", "lease_id", "kind"))
    books.failures = Counter(kind for _, _, kind in rows)
    recorded = Counter((str(job), lease) for job, lease, kind in rows if kind not in UNCOUNTED)
    books.require("failed attempts without a Failure row", due - recorded.keys())
    books.require("Failure rows without a failed attempt", recorded.keys() - due)
    books.require("attempts with two Failure rows", (claim for claim, count in recorded.items() if count > 1))
