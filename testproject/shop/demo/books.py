"""The books: what was promised, what the queue recorded, what the world received, and whether they agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from http import HTTPStatus
from operator import or_
from pathlib import Path
from typing import NamedTuple

from django.db.models import Q

from django_workqueue.domain.states import FailureKind
from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job

from ..models import Order
from .customers import Accepted
from .endpoint import Delivery

#: A job is at every instant in exactly one of them.
PLACES = (Job, FinishedJob, DeadLetter)
MESSAGE_ID = re.compile(r"^Message-ID: <([0-9a-f-]{36})@", re.MULTILINE)


class Attempt(NamedTuple):
    """One failed attempt, as the queue recorded it."""

    job: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Books:
    """Everything that is known at the end. Jobs are known by their ids."""

    accepted: list[Accepted]
    declined: int
    refusing: str
    killed_with: set[str]
    """What the killed worker held when it died."""
    stored_orders: set[int]
    live: list[str]
    done: list[str]
    dead: list[str]
    failures: list[Attempt]
    mails: Counter[str]
    deliveries: list[Delivery]

    @property
    def promised(self) -> set[str]:
        """The jobs whose enqueueing was committed with an order."""
        return self.receipts | self.webhooks

    @property
    def receipts(self) -> set[str]:
        """The promised jobs that send an e-mail."""
        return {each.receipt for each in self.accepted}

    @property
    def webhooks(self) -> set[str]:
        """The promised jobs that call a seller's server."""
        return {each.webhook for each in self.accepted}

    @property
    def deliverable(self) -> set[str]:
        """The webhooks of shops whose server is well."""
        return {each.webhook for each in self.accepted if each.shop != self.refusing}

    @property
    def stored(self) -> Counter[str]:
        """In how many places of the queue each job stands."""
        return Counter(self.live) + Counter(self.done) + Counter(self.dead)

    @property
    def lost(self) -> set[str]:
        """Promised jobs that are nowhere."""
        return self.promised - self.stored.keys()

    @property
    def ghosts(self) -> set[str]:
        """Jobs that were stored or delivered although their order was rolled back."""
        return (self.stored.keys() | {each.job for each in self.deliveries}) - self.promised

    @property
    def reaped(self) -> Counter[str]:
        """How often each job's lease lapsed and was reaped."""
        return self._failed(FailureKind.LAPSED)

    @property
    def retried(self) -> Counter[str]:
        """How often each job failed and was tried again."""
        return self._failed(FailureKind.ERROR)

    @property
    def delivered(self) -> Counter[str]:
        """How often each webhook was delivered with success."""
        return self._answered(HTTPStatus.OK)

    @property
    def busy(self) -> Counter[str]:
        """How often each webhook met a busy server."""
        return self._answered(HTTPStatus.SERVICE_UNAVAILABLE)

    @property
    def repeats(self) -> Counter[str]:
        """How often each effect happened more than once: the price of at-least-once."""
        return Counter({job: n - 1 for job, n in (self.mails + self.delivered).items() if n > 1})

    def faults(self) -> list[str]:
        """Return a sentence for everything that does not add up; empty when the books balance."""
        return [*self._queue_faults(), *self._world_faults()]

    def _queue_faults(self) -> Iterator[str]:
        yield from _fault(self.lost, "lost: accepted, and stored nowhere")
        yield from _fault(self.ghosts, "of orders that were rolled back, and yet stored or delivered")
        yield from _fault(self.live, "still unfinished")
        yield from _fault({job for job, places in self.stored.items() if places > 1}, "in two places at once")
        yield from _fault(
            set(self.dead) ^ (self.webhooks - self.deliverable), "dead without cause, or not dead with cause"
        )
        yield from _fault(self.killed_with - self.reaped.keys(), "held by the killed worker, and never reaped")
        if self.stored_orders != {each.order for each in self.accepted}:
            yield f"{len(self.stored_orders)} orders are stored, but {len(self.accepted)} were accepted."

    def _world_faults(self) -> Iterator[str]:
        yield from _fault(self.receipts - self.mails.keys(), "done, but without an e-mail")
        yield from _fault(self.deliverable - self.delivered.keys(), "done, but without a delivery")
        yield from _fault(
            self.repeats.keys() - self.reaped.keys(), "the cause of a repeated effect, although never reaped"
        )
        steady = self.promised - self.reaped.keys()
        unlike = {job for job in steady if self.busy[job] != self.retried[job]}
        yield from _fault(unlike, "with more or fewer retries recorded than the server answered 503")

    def _failed(self, kind: FailureKind) -> Counter[str]:
        return Counter(each.job for each in self.failures if each.kind == kind)

    def _answered(self, status: int) -> Counter[str]:
        return Counter(each.job for each in self.deliveries if each.status == status)


def _fault(jobs: Collection[str], what: str) -> Iterator[str]:
    if jobs:
        yield f"Jobs that are {what}: {len(jobs)}, for example {min(jobs)}."


def read_mails(folder: Path, jobs: set[str]) -> Counter[str]:
    """Count the e-mails in ``folder`` that ``jobs`` have sent; the Message-ID names the job."""
    found: Counter[str] = Counter()
    for file in folder.glob("*.log"):
        found.update(job for job in MESSAGE_ID.findall(file.read_text(errors="replace")) if job in jobs)
    return found


@dataclass(frozen=True, slots=True)
class Ledger:
    """Reads what the queue has recorded about the jobs of some tenants, the shops of this run."""

    tenants: list[str]

    def progress(self) -> dict[str, int]:
        """Return how many jobs stand where now, in the order in which to print them."""
        jobs = Job.objects.filter(tenant__in=self.tenants)
        return {
            "ready": jobs.ready().count(),
            "leased": jobs.leased().count(),
            "waiting to retry": jobs.scheduled().count(),
            "done": FinishedJob.objects.filter(tenant__in=self.tenants).count(),
            "dead": DeadLetter.objects.filter(tenant__in=self.tenants).count(),
        }

    def unfinished(self) -> bool:
        """Return whether any job is still live."""
        return Job.objects.filter(tenant__in=self.tenants).exists()

    def ids(self, model: type[Job | FinishedJob | DeadLetter]) -> list[str]:
        """Return the ids of the jobs that stand in one of the three places."""
        return [str(pk) for pk in model.objects.filter(tenant__in=self.tenants).values_list("pk", flat=True)]

    def failures(self) -> list[Attempt]:
        """Return every failed attempt, wherever its job is now."""
        places = [model.objects.filter(tenant__in=self.tenants).values("pk") for model in PLACES]
        found = Failure.objects.filter(reduce(or_, [Q(job_id__in=place) for place in places]))
        return [Attempt(str(job), kind) for job, kind in found.values_list("job_id", "kind")]

    def orders(self) -> set[int]:
        """Return the numbers of the orders that are stored."""
        return set(Order.objects.filter(shop__slug__in=self.tenants).values_list("pk", flat=True))
