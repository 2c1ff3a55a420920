"""Claims, outcomes and settlements for tests, in one line each."""

from __future__ import annotations

from datetime import timedelta

from django_workqueue.domain.outcomes import Bury, ClaimedJob, Failed, Retry, Settlement, Succeeded
from django_workqueue.domain.policies import BackoffPolicy
from django_workqueue.domain.rotation import LaneTurn
from django_workqueue.domain.states import DeathReason, FailureKind
from django_workqueue.store import Store
from django_workqueue.store.claim import ClaimOrder

NO_DELAY = Retry(timedelta())
EXACT = BackoffPolicy(jitter=0)


def order(*tenants: str, **changes) -> ClaimOrder:
    """Return a claim order over the lanes of ``tenants``, by default the nameless one."""
    lanes = changes.pop("lanes", [LaneTurn(tenant) for tenant in tenants or ("",)])
    values = {
        "worker": "worker-1",
        "queue": "default",
        "lanes": lanes,
        "limit": 10,
        "quantum": 10,
        "lease": timedelta(seconds=30),
        "max_lease": timedelta(hours=1),
    }
    return ClaimOrder(**values | changes)


def claim(store: Store, *tenants: str, **changes) -> list[ClaimedJob]:
    """Claim jobs and return them."""
    return store.claim(order(*tenants, **changes)).jobs


def claim_one(store: Store, *tenants: str, **changes) -> ClaimedJob:
    """Claim the one job that is to run next."""
    [job] = claim(store, *tenants, **{"limit": 1} | changes)
    return job


def succeeded(job: ClaimedJob, result: str = "null", *, retention: timedelta = timedelta(days=1)) -> Settlement:
    """Return the settlement of an attempt that went well."""
    return Settlement(job, Succeeded(result, 0.5), EXACT, retention)


def failed(job: ClaimedJob, message: str = "no paper", *, kind: FailureKind = FailureKind.ERROR, **more) -> Settlement:
    """Return the settlement of an attempt that failed."""
    outcome = Failed(kind=kind, error_class="tests.samples.OutOfPaperError", message=message, **more)
    return Settlement(job, outcome, EXACT, timedelta(days=1))


def complete(store: Store, *jobs: ClaimedJob, worker: str = "worker-1", last: bool = True) -> set:
    """Settle ``jobs`` of one lease as succeeded and return the ids that were."""
    return store.complete(jobs[0].lease_id, [succeeded(job) for job in jobs], worker=worker, last=last)


def fail(store: Store, job: ClaimedJob, decision=NO_DELAY, *, last: bool = True, **outcome) -> bool:
    """Settle ``job`` as failed."""
    return store.fail(failed(job, **outcome), decision, worker="worker-1", last=last)


def bury(store: Store, job: ClaimedJob, **outcome) -> bool:
    """Settle ``job`` as failed for good."""
    return fail(store, job, Bury(DeathReason.EXHAUSTED), **outcome)


def put_back(_lapse) -> Retry:
    """Judge every lapse mildly."""
    return NO_DELAY
