"""
The numbers of the queue for monitors: as JSON, and for Prometheus where ``prometheus-client`` is installed.

Register ``QueueCollector()`` with a registry of your own, or include ``django_workqueue.urls``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured

from .lifecycle.snapshot import QUANTILES, SPAN, Snapshot, TaskFigures, quantile, snapshot
from .store.watch import QueueStats

PREFIX = "django_workqueue"
STATES = ("ready", "scheduled", "blocked", "parked", "leased", "dead")
COUNTERS = {
    "done": "Jobs that have succeeded.",
    "failed": "Attempts that have failed.",
    "died": "Jobs that have become dead letters.",
    "cancelled": "Jobs that were cancelled.",
    "reaped": "Attempts that were taken back from lost workers.",
    "duplicates": "Enqueues that were answered with a job that was there before.",
}
_MINUTES = f"in the last {SPAN.total_seconds() / 60:.0f} minutes"


class Sample(NamedTuple):
    """One number with its labels."""

    labels: tuple[str, ...]
    value: float


class Metric(NamedTuple):
    """One metric with its samples. ``kind`` is ``"gauge"`` or ``"counter"``."""

    name: str
    kind: str
    text: str
    labels: tuple[str, ...]
    samples: list[Sample]


def metrics(*, database: str | None = None) -> list[Metric]:
    """Return every metric as it stands."""
    found = snapshot(database=database)
    return [*_of_queues(found.queues), *_of_tasks(found.tasks), *_of_workers(found)]


def as_json(*, database: str | None = None) -> dict[str, Any]:
    """Return the same numbers as what JSON can hold."""
    found = snapshot(database=database)
    return {
        "read_at": found.read_at.isoformat(),
        "span_seconds": SPAN.total_seconds(),
        "queues": [_queue(each) for each in found.queues],
        "tasks": [_task(each) for each in found.tasks],
        "workers": asdict(found.workers),
    }


class QueueCollector:
    """A collector of ``prometheus_client``: it reads the queue whenever its registry is asked."""

    def __init__(self, *, database: str | None = None) -> None:
        self._client = _client()
        self._database = database

    def describe(self) -> list[Any]:
        """Return nothing, so that a registry does not read the database while the process starts."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the families of metrics."""
        kinds = {"gauge": self._client.core.GaugeMetricFamily, "counter": self._client.core.CounterMetricFamily}
        for metric in metrics(database=self._database):
            family = kinds[metric.kind](metric.name, metric.text, labels=metric.labels)
            for sample in metric.samples:
                family.add_metric(sample.labels, sample.value)
            yield family


def exposition(*, database: str | None = None) -> tuple[bytes, str]:
    """Return what Prometheus scrapes, and its content type. Raises ImproperlyConfigured without its client."""
    client = _client()
    registry = client.CollectorRegistry()
    registry.register(QueueCollector(database=database))
    return client.generate_latest(registry), client.CONTENT_TYPE_LATEST


def _client() -> Any:
    try:
        import prometheus_client  # noqa: PLC0415 - an optional package
        import prometheus_client.core  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ImproperlyConfigured(
            "prometheus_client is not installed. Install 'django-workqueue[prometheus]', or use the numbers as JSON."
        ) from error
    return prometheus_client


# -- metrics -----------------------------------------------------------------------------------------------------------


def _of_queues(queues: list[QueueStats]) -> Iterator[Metric]:
    jobs = [Sample((each.queue, state), getattr(each, state)) for each in queues for state in STATES]
    yield Metric(f"{PREFIX}_jobs", "gauge", "Jobs, counted up to 10,000.", ("queue", "state"), jobs)
    gauges = {
        "oldest_ready_age_seconds": ("oldest_age_seconds", "How long the oldest ready job has waited."),
        "queue_workers": ("workers", "Live worker processes that serve the queue."),
        "queue_paused": ("paused", "1 while the queue is paused."),
        "queue_unserved": ("unserved", "1 while work waits and no worker serves the queue."),
    }
    for name, (attribute, text) in gauges.items():
        samples = [Sample((each.queue,), float(getattr(each, attribute))) for each in queues]
        yield Metric(f"{PREFIX}_{name}", "gauge", text, ("queue",), samples)
    for name, text in COUNTERS.items():
        samples = [Sample((each.queue,), getattr(each, name)) for each in queues]
        yield Metric(f"{PREFIX}_{name}", "counter", text, ("queue",), samples)


def _of_tasks(tasks: list[TaskFigures]) -> Iterator[Metric]:
    labels = ("queue", "task")
    for name, text in (("done", "Jobs done"), ("failed", "Attempts failed"), ("dead", "Jobs that died")):
        samples = [Sample((each.queue, each.task), getattr(each, name)) for each in tasks]
        yield Metric(f"{PREFIX}_task_recent_{name}", "gauge", f"{text} {_MINUTES}.", labels, samples)
    for name, attribute, text in (("wait", "waits", "How long jobs waited"), ("run", "runs", "How long jobs ran")):
        samples = [
            Sample((each.queue, each.task, str(share)), seconds)
            for each in tasks
            for share in QUANTILES
            if (seconds := quantile(getattr(each, attribute), share)) is not None
        ]
        words = f"{text} {_MINUTES}, up to the next power of two of milliseconds."
        yield Metric(f"{PREFIX}_task_recent_{name}_seconds", "gauge", words, (*labels, "quantile"), samples)


def _of_workers(found: Snapshot) -> Iterator[Metric]:
    texts = {
        "processes": "Live worker processes.",
        "slots": "Jobs that they can run at once.",
        "running": "Jobs that they run.",
        "memory_bytes": "Their resident memory.",
    }
    for name, text in texts.items():
        samples = [Sample((), getattr(found.workers, name))]
        yield Metric(f"{PREFIX}_worker_{name}", "gauge", text, (), samples)


# -- JSON --------------------------------------------------------------------------------------------------------------


def _queue(each: QueueStats) -> dict[str, Any]:
    return {**asdict(each), "capped": sorted(each.capped), "depth": each.depth, "unserved": each.unserved}


def _task(each: TaskFigures) -> dict[str, Any]:
    told: dict[str, Any] = {name: getattr(each, name) for name in ("queue", "task", "done", "failed", "dead")}
    for name, histogram in (("wait_seconds", each.waits), ("run_seconds", each.runs)):
        told[name] = {str(share): quantile(histogram, share) for share in QUANTILES}
    return told
