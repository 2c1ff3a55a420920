"""Enqueue: refuse at the door what cannot work, then store the job in the caller's own transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from operator import is_
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID

from django.conf import settings as django_settings
from django.utils import timezone

from ..conf import get_settings
from ..domain.encoding import encode
from ..domain.hooks import enqueue_hooks
from ..domain.ids import new_ids
from ..domain.states import JobState
from ..domain.trace import captured_trace, checked_trace
from ..exceptions import InvalidJobError
from ..hooks import NewJob
from ..models import Job
from ..models.base import KEY_LENGTH, NAME_LENGTH, TASK_LENGTH
from ..store import Store, store_for
from ..store.enqueue import Stored
from ..store.watch import QueueCounts
from .depth import insert_within_depth
from .limits import admit_on_commit, keys_of
from .wake import wake

MAX_ATTEMPTS = 32767
MOST_AT_ONCE = 32767
"""The largest concurrency_limit that a row can hold."""
DedupeUntil = Literal["finish", "start"]
T = TypeVar("T")


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class JobRequest(NamedTuple):
    """A job as a caller asks for it, before anything is checked."""

    task: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = _NOTHING
    dedupe_key: str | None = None
    concurrency_key: str | None = None
    job_id: UUID | None = None
    queue: str = "default"
    tenant: str = ""
    priority: int = 0
    run_after: datetime | timedelta | None = None
    max_attempts: int | None = None
    dedupe_until: DedupeUntil = "finish"
    dedupe_ttl: timedelta | None = None
    concurrency_limit: int = 1
    metadata: Mapping[str, Any] = _NOTHING
    marks: Mapping[str, Any] = _NOTHING
    """Metadata of the queue's own, whose keys begin with an underscore."""


FIRST_COMMON = JobRequest._fields.index("queue")
"""From this field on, the requests of one task have the same in them."""


def enqueue(
    requests: Sequence[JobRequest], *, database: str | None = None, permitted_queues: Collection[str] = ()
) -> list[Stored]:
    """
    Store a job for each request and answer them in order; a clash answers the job that was there before.

    All is checked before anything is written, so that a refusal leaves the caller's transaction as it was. Raises
    PayloadError, InvalidJobError, QueueFullError, QueueUnavailableError or what a hook raises. ``permitted_queues`` are
    those that a hook may choose; any where it is empty.
    """
    store = store_for(database)
    jobs = build(requests, partial(_now, store), permitted_queues=permitted_queues)
    given = frozenset(request.job_id for request in requests if request.job_id is not None)
    stored = insert_within_depth(store, jobs, given)
    wake(store, {(job.queue, job.tenant) for job, duplicate in stored if not duplicate and job.state == JobState.READY})
    admit_on_commit(store, keys_of(job for job, duplicate in stored if not duplicate))
    _count_duplicates(store, stored)
    return stored


def build(
    requests: Sequence[JobRequest], clock: Callable[[], datetime], *, permitted_queues: Collection[str] = ()
) -> list[Job]:
    """
    Return the jobs that ``requests`` ask for and hooks have seen, checked, encoded and not stored.

    ``clock`` is what deferred jobs and expiring keys are placed by; it is asked only where there is one.
    """
    trace = captured_trace()
    if enqueue_hooks():
        requests = [_hooked(request, trace, permitted_queues) for request in requests]
        trace = {}
    jobs = list(_assembled(requests, trace))
    _set_due_times(clock, jobs, requests)
    _set_expiries(clock, jobs, requests)
    return jobs


def check(request: JobRequest) -> None:
    """Raise what names the fault unless the request could be stored as it stands. Hooks do not see it."""
    list(_assembled([request], _NOTHING))


def _now(store: Store) -> datetime:
    with store.reachable("enqueue"):
        return store.now()


def queue_name(name: T) -> T:
    """Return ``name`` as it is stored: a trailing slash makes no other queue. What is no text is refused elsewhere."""
    return name.rstrip("/") if isinstance(name, str) else name  # type: ignore[return-value] # a str, as T is


def _hooked(request: JobRequest, trace: Mapping[str, Any], permitted_queues: Collection[str]) -> JobRequest:
    """Return what the project's hooks make of a request. The trace is in its metadata then, for them to change."""
    new = NewJob(
        task=request.task,
        queue=request.queue,
        tenant=request.tenant,
        priority=request.priority,
        metadata={**trace, **_mapping(request.metadata)},
    )
    for hook in enqueue_hooks():
        hook(new)
    # What the caller chose was checked against TASKS before it came here.
    if new.queue != request.queue and permitted_queues and queue_name(new.queue) not in permitted_queues:
        raise InvalidJobError(
            f"An enqueue hook put {request.task} into the queue {new.queue!r}, which TASKS does not permit. "
            "Add it to QUEUES of the backend."
        )
    metadata = _mapping(new.metadata)
    return request._replace(queue=new.queue, tenant=new.tenant, priority=new.priority, metadata=metadata)


def _assembled(requests: Sequence[JobRequest], trace: Mapping[str, Any]) -> Iterator[Job]:
    """Yield the job of each request. What it has in common with the one before it is checked and encoded once."""
    most = get_settings().max_payload_bytes
    common: dict[str, Any] = {}
    last: JobRequest | None = None
    options: tuple[Any, ...] = ()
    for request, fresh_id in zip(requests, new_ids(len(requests)), strict=True):
        # The very same: equal would not do, since True is equal to 1, and refused.
        if last is None or request.task is not last.task or not all(map(is_, request[FIRST_COMMON:], options)):
            common, options = _common_columns(request, trace), request[FIRST_COMMON:]
            last = request
        if request.dedupe_key is not None:
            check_text("dedupe_key", request.dedupe_key, KEY_LENGTH)
        job = Job.assemble(
            common,
            id=fresh_id if request.job_id is None else _checked_id(request.job_id),
            args=encode(list(request.args), "args", most),
            kwargs=encode(dict(request.kwargs), "kwargs", most),
            dedupe_key=request.dedupe_key,
        )
        if request.concurrency_key is not None:
            _limit(job, request)
        yield job


def _common_columns(request: JobRequest, trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns, checked, that jobs of such requests have in common."""
    settings = get_settings()
    queue = queue_name(request.queue)
    _check_names(queue, request.tenant, request.task)
    attempts = settings.queue(queue).max_attempts if request.max_attempts is None else request.max_attempts
    return {
        **Job.new_columns(),
        "queue": queue,
        "tenant": request.tenant,
        "task": request.task,
        "priority": whole("priority", request.priority, -100, 100),
        "max_attempts": whole("max_attempts", attempts, 1, MAX_ATTEMPTS),
        "dedupe_until_start": _until_start(request.dedupe_until),
        "metadata": _metadata(trace, request, settings.max_payload_bytes),
    }


def _limit(job: Job, request: JobRequest) -> None:
    """Let a job with a concurrency key wait for admission."""
    check_text("concurrency_key", request.concurrency_key, KEY_LENGTH)
    job.concurrency_key = request.concurrency_key
    job.concurrency_limit = whole("concurrency_limit", request.concurrency_limit, 1, MOST_AT_ONCE)
    job.state = JobState.BLOCKED


def _set_due_times(clock: Callable[[], datetime], jobs: Sequence[Job], requests: Sequence[JobRequest]) -> None:
    deferred = [(job, request.run_after) for job, request in zip(jobs, requests, strict=True) if request.run_after]
    if not deferred:
        return
    now = clock()
    for job, run_after in deferred:
        job.ready_at = now + run_after if isinstance(run_after, timedelta) else _comparable(run_after)
        if job.ready_at > now:
            job.state = JobState.SCHEDULED


def _set_expiries(clock: Callable[[], datetime], jobs: Sequence[Job], requests: Sequence[JobRequest]) -> None:
    expiring = [
        (job, request.dedupe_ttl)
        for job, request in zip(jobs, requests, strict=True)
        if request.dedupe_ttl is not None and job.dedupe_key is not None
    ]
    if expiring:
        now = clock()
        for job, ttl in expiring:
            job.dedupe_expires_at = now + ttl


def _comparable(moment: datetime) -> datetime:
    """Return ``moment`` with a zone or without, as this project's other times are (USE_TZ)."""
    if not isinstance(moment, datetime):
        raise InvalidJobError(f"run_after is {moment!r}. Pass a datetime or a timedelta.")
    if timezone.is_aware(moment) == django_settings.USE_TZ:
        return moment
    return timezone.make_aware(moment) if django_settings.USE_TZ else timezone.make_naive(moment)


def _metadata(trace: Mapping[str, Any], request: JobRequest, max_bytes: int) -> str:
    if not trace and not request.metadata and not request.marks:
        return "{}"
    given = _mapping(request.metadata)
    reserved = [key for key in given if isinstance(key, str) and key.startswith("_")]
    if reserved:
        raise InvalidJobError(f"metadata has the key {reserved[0]!r}. Keys that begin with an underscore are reserved.")
    return encode(checked_trace({**trace, **given}) | dict(request.marks), "metadata", max_bytes)


def _mapping(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidJobError(f"metadata is {given!r}. Pass a dict.")
    return given


def _until_start(until: str) -> bool:
    if until not in {"finish", "start"}:
        raise InvalidJobError(f"dedupe_until is {until!r}. Use 'finish' or 'start'.")
    return until == "start"


def _checked_id(given: UUID) -> UUID:
    if not isinstance(given, UUID):
        raise InvalidJobError(f"job_id is {given!r}. Pass a uuid.UUID.")
    return given


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return ``value``, or refuse it by ``name`` unless it is a whole number in these bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidJobError(f"{name} is {value!r}. It must be a whole number from {low} to {high}.")
    return value


@lru_cache(maxsize=1024, typed=True)
def _check_hashable_names(queue: str, tenant: str, task: str) -> None:
    check_text("queue", queue, NAME_LENGTH)
    check_text("tenant", tenant, NAME_LENGTH, may_be_empty=True)
    check_text("task path", task, TASK_LENGTH)


def _check_names(queue: Any, tenant: Any, task: Any) -> None:
    """Check the names that are the same for job after job: once is enough for each."""
    try:
        _check_hashable_names(queue, tenant, task)
    except TypeError:  # a list, say, which no cache takes
        _check_hashable_names.__wrapped__(queue, tenant, task)


def check_text(name: str, text: Any, most: int, *, may_be_empty: bool = False) -> None:
    """Refuse ``text`` by ``name`` unless it is printable text of at most ``most`` characters."""
    if not isinstance(text, str):
        raise InvalidJobError(f"{name} is {text!r}, of type {type(text).__name__}. Pass a string.")
    if not text and not may_be_empty:
        raise InvalidJobError(f"{name} is empty. Give it a name.")
    if len(text) > most:
        raise InvalidJobError(f"{name} has {len(text)} characters; at most {most} are kept: {text[:40]!r}...")
    if not text.isascii() or not text.isprintable():
        encode(text, name, most * 4)
        if not text.isprintable():
            raise InvalidJobError(f"{name} is {text!r}. Leave out control characters.")


def _count_duplicates(store: Store, stored: Sequence[Stored]) -> None:
    """Count what was suppressed after the commit: the caller's transaction must not lock the counter's row."""
    counts = Counter(job.queue for job, duplicate in stored if duplicate)
    if counts:
        additions = {queue: QueueCounts(duplicates=count) for queue, count in counts.items()}
        store.on_commit(lambda: store.add_counts(additions))
