"""
The settings dict ``WORKQUEUE``, read into frozen dataclasses.

Durations are seconds or ``timedelta``. ``get_settings()`` is cached and follows ``override_settings``;
``find_faults()`` is what the system checks report.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver

from .domain.limits import NO_LIMITS, Limits, Rate
from .domain.policies import BackoffPolicy
from .exceptions import LONGEST

SHORTEST_TOKEN = 16
"""Characters below which a token could be guessed."""
MOST_BEGUN = 2_000_000_000
"""What a row can count of a rate's window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePolicy:
    """What holds for the jobs of one queue."""

    lease: timedelta = timedelta(seconds=30)
    """How long a claim holds without renewal: the longest silence of a worker before its work is given away."""
    max_lease: timedelta = timedelta(hours=1)
    """How long renewals may go on in all: the longest that one attempt may run."""
    max_attempts: int = 5
    timeout: timedelta | None = None
    """How long one attempt may run; None for no limit but ``max_lease``."""
    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)
    retention: timedelta = timedelta(days=1)
    """How long finished jobs and their results are kept; zero deletes them in the completing statement."""
    limits: Limits = NO_LIMITS
    tenant_depth: int | None = None
    """How many jobs of one tenant may wait in the queue before enqueueing is refused; None refuses none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole of ``WORKQUEUE``. ``policy`` holds the defaults, ``queues`` what single queues override."""

    database: str = "default"
    policy: QueuePolicy = field(default_factory=QueuePolicy)
    queues: Mapping[str, QueuePolicy] = field(default_factory=dict)
    heartbeat: timedelta | None = None
    """Time between two renewals; None takes a third of the shortest lease."""
    dead_retention: timedelta | None = None
    """How long dead letters are kept; None, the default, keeps them for ever."""
    step_retention: timedelta = timedelta(days=7)
    """How long the outcome of a step is kept; that of a live job or a dead letter is kept with it."""
    max_payload_bytes: int = 256 * 1024
    unknown_task_patience: timedelta = timedelta(hours=1)
    """How long a job whose task no worker knows is put off before it becomes a dead letter."""
    timeout_grace: timedelta = timedelta(seconds=2)
    """How long a body that was told to end may still take before its worker starts over."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Former dotted path of a task -> its present one."""
    enqueue_hooks: tuple[str, ...] = ()
    """Dotted paths of functions that see each job before it is stored."""
    run_hooks: tuple[str, ...] = ()
    """Dotted paths of functions that return a context manager for each run."""
    schedules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Schedules by name, each as it is written: one that cannot be used must not keep the others from firing."""
    mask: tuple[str, ...] = ()
    """Names of arguments whose values are not shown, or patterns of names; without case."""
    bounds_depth: bool = False
    """Whether any queue bounds what may wait in it. Follows from ``policy`` and ``queues``."""
    tenant_scope: str | None = None
    """Dotted path of the function that says which tenants a user may see; None lets users see those of all."""
    metrics_token: str | None = field(default=None, repr=False)
    """What a monitor sends to be shown the numbers; None lets in none that way."""
    poll_interval: timedelta = timedelta(seconds=1)
    reap_interval: timedelta = timedelta(seconds=5)

    def queue(self, name: str) -> QueuePolicy:
        """Return the policy of the queue called ``name``."""
        return self.queues.get(name, self.policy)

    def redelivery_horizon(self, policy: QueuePolicy) -> timedelta:
        """Return how long after its first start a job of that policy may be delivered again at the latest."""
        attempt = policy.max_lease + policy.lease + policy.backoff.cap
        # A century is longer than any retention can be, and more would not fit into a timedelta.
        tries = min(policy.max_attempts, LONGEST // attempt + 1)
        return tries * attempt + self.unknown_task_patience

    @property
    def beat(self) -> timedelta:
        """Time between two renewals of the leases that a worker holds."""
        return self.heartbeat or min(policy.lease for policy in (self.policy, *self.queues.values())) / 3


class Fault(NamedTuple):
    """One thing wrong with ``WORKQUEUE``: which key, what is wrong, what to do."""

    key: str
    message: str
    hint: str


def _seconds(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        duration = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        duration = timedelta(seconds=value)
    else:
        raise ValueError("must be a timedelta or a number of seconds")  # noqa: TRY004 - one error for every bad value
    if duration < timedelta():
        raise ValueError("must not be negative")
    if duration > LONGEST:
        raise ValueError("must not be longer than a century")
    return duration


def _positive_seconds(value: Any) -> timedelta:
    duration = _seconds(value)
    if not duration:
        raise ValueError("must be more than zero")
    return duration


def _optional_seconds(value: Any) -> timedelta | None:
    return None if value is None else _positive_seconds(value)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 32767:
        raise ValueError("must be a whole number from 1 to 32767")
    return value


def _optional_count(value: Any) -> int | None:
    return None if value is None else _count(value)


def _optional_depth(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError("must be a whole number, at least 1, or None")
    return value


_PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _rate(value: Any) -> Rate | None:
    if value is None:
        return None
    if isinstance(value, str):
        count, slash, unit = value.partition("/")
        if not (slash and count.strip().isascii() and count.strip().isdecimal() and unit.strip() in _PERIODS):
            raise ValueError("must be like '100/m', with s, m, h or d, or a pair of a count and a period")
        value = (int(count), _PERIODS[unit.strip()])
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("must be like '100/m', or a pair of a count and a period")
    count, period = value
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_BEGUN:
        raise ValueError(f"must have a whole number from 1 to {MOST_BEGUN} as its count")
    return Rate(count, _positive_seconds(period))


def _byte_count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("must be a whole number of bytes, at least 1")
    return value


def _share(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("must be a number from 0 to 1")
    return float(value)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a non-empty string")
    return value


def _optional_path(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError("must be the dotted path of a function, or None")
    return value


def _token(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or len(value) < SHORTEST_TOKEN or not value.isprintable()):
        raise ValueError(f"must be printable text of at least {SHORTEST_TOKEN} characters, or None")
    return value


def _names(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(part, str) for pair in value.items() for part in pair):
        raise ValueError("must map former dotted paths to present ones")
    return dict(value)


def _paths(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(path, str) and path for path in value):
        raise ValueError("must be a list of dotted paths")
    return tuple(value)


def _patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) and name.strip() for name in value):
        raise ValueError("must be a list of names, which may be patterns such as '*token*'")
    return tuple(name.strip().casefold() for name in value)


def _entries(value: Any) -> dict[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(entry, Mapping) for entry in value.values()):
        raise ValueError("must map names to dicts")
    return dict(value)


Parser = Callable[[Any], Any]

BACKOFF_KEYS: dict[str, tuple[str, Parser]] = {
    "BACKOFF": ("base", _seconds),
    "BACKOFF_CAP": ("cap", _seconds),
    "JITTER": ("jitter", _share),
}
LIMIT_KEYS: dict[str, tuple[str, Parser]] = {
    "CONCURRENCY": ("concurrency", _optional_count),
    "TENANT_CONCURRENCY": ("tenant_concurrency", _optional_count),
    "RATE": ("rate", _rate),
}
POLICY_KEYS: dict[str, tuple[str, Parser]] = {
    "LEASE": ("lease", _positive_seconds),
    "MAX_LEASE": ("max_lease", _positive_seconds),
    "MAX_ATTEMPTS": ("max_attempts", _count),
    "TIMEOUT": ("timeout", _optional_seconds),
    "RETENTION": ("retention", _seconds),
    "TENANT_DEPTH": ("tenant_depth", _optional_depth),
}
APP_KEYS: dict[str, tuple[str, Parser]] = {
    "DATABASE": ("database", _name),
    "HEARTBEAT": ("heartbeat", _optional_seconds),
    "DEAD_RETENTION": ("dead_retention", _optional_seconds),
    "STEP_RETENTION": ("step_retention", _positive_seconds),
    "MAX_PAYLOAD_BYTES": ("max_payload_bytes", _byte_count),
    "UNKNOWN_TASK_PATIENCE": ("unknown_task_patience", _seconds),
    "TIMEOUT_GRACE": ("timeout_grace", _positive_seconds),
    "ALIASES": ("aliases", _names),
    "ENQUEUE_HOOKS": ("enqueue_hooks", _paths),
    "RUN_HOOKS": ("run_hooks", _paths),
    "SCHEDULES": ("schedules", _entries),
    "MASK": ("mask", _patterns),
    "TENANT_SCOPE": ("tenant_scope", _optional_path),
    "METRICS_TOKEN": ("metrics_token", _token),
    "POLL_INTERVAL": ("poll_interval", _positive_seconds),
    "REAP_INTERVAL": ("reap_interval", _positive_seconds),
}
SECRETS = {"METRICS_TOKEN", "SCHEDULES"}
"""Keys whose values no message quotes."""
QUEUE_KEYS = POLICY_KEYS.keys() | BACKOFF_KEYS.keys() | LIMIT_KEYS.keys()
ALL_KEYS = QUEUE_KEYS | APP_KEYS.keys() | {"QUEUES"}


class _Reader:
    """Reads a raw dict and collects what is wrong with it instead of stopping at the first fault."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def settings(self, raw: Any) -> Settings:
        if not isinstance(raw, Mapping):
            self._fault("WORKQUEUE", "must be a dict", f"It is {raw!r}.")
            return Settings()
        self._unknown(raw, ALL_KEYS, "WORKQUEUE")
        policy = self._policy(raw, QueuePolicy(), "WORKQUEUE")
        queues = self._queues(raw, policy)
        bounds_depth = any(each.tenant_depth is not None for each in (policy, *queues.values()))
        values = self._values(raw, APP_KEYS, "WORKQUEUE")
        return Settings(policy=policy, queues=queues, bounds_depth=bounds_depth, **values)

    def _queues(self, raw: Mapping[str, Any], policy: QueuePolicy) -> dict[str, QueuePolicy]:
        queues = raw.get("QUEUES", {})
        if not isinstance(queues, Mapping) or not all(isinstance(each, Mapping) for each in queues.values()):
            self._fault("WORKQUEUE['QUEUES']", "must map queue names to dicts", f"It is {queues!r}.")
            return {}
        return {name: self._queue(name, overrides, policy) for name, overrides in queues.items()}

    def _queue(self, name: str, raw: Mapping[str, Any], policy: QueuePolicy) -> QueuePolicy:
        where = f"WORKQUEUE['QUEUES'][{name!r}]"
        self._unknown(raw, QUEUE_KEYS, where)
        return self._policy(raw, policy, where)

    def _policy(self, raw: Mapping[str, Any], base: QueuePolicy, where: str) -> QueuePolicy:
        backoff = replace(base.backoff, **self._values(raw, BACKOFF_KEYS, where))
        limits = replace(base.limits, **self._values(raw, LIMIT_KEYS, where))
        return replace(base, backoff=backoff, limits=limits, **self._values(raw, POLICY_KEYS, where))

    def _values(self, raw: Mapping[str, Any], keys: dict[str, tuple[str, Parser]], where: str) -> dict[str, Any]:
        values = {}
        for key, (attribute, parse) in keys.items():
            if key in raw:
                try:
                    values[attribute] = parse(raw[key])
                except (ValueError, OverflowError) as error:
                    shown = "Its value is not shown." if key in SECRETS else f"It is {raw[key]!r}."
                    self._fault(f"{where}[{key!r}]", str(error), shown)
        return values

    def _unknown(self, raw: Mapping[str, Any], known: Any, where: str) -> None:
        for key in sorted(raw.keys() - known, key=str):
            close = difflib.get_close_matches(str(key).upper(), known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"Known keys: {', '.join(sorted(known))}."
            self._fault(f"{where}[{key!r}]", "is not a setting", hint)

    def _fault(self, key: str, message: str, hint: str) -> None:
        self.faults.append(Fault(key, message, hint))


def find_faults() -> list[Fault]:
    """Return everything wrong with the shape of ``WORKQUEUE``; empty when it can be used."""
    reader = _Reader()
    reader.settings(getattr(django_settings, "WORKQUEUE", {}))
    return reader.faults


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the settings in force. Raises ImproperlyConfigured naming the first key that cannot be used."""
    reader = _Reader()
    settings = reader.settings(getattr(django_settings, "WORKQUEUE", {}))
    if reader.faults:
        key, message, hint = reader.faults[0]
        raise ImproperlyConfigured(f"{key} {message}. {hint}")
    return settings


@receiver(setting_changed)
def _forget(*, setting: str, **_kwargs: Any) -> None:
    if setting == "WORKQUEUE":
        get_settings.cache_clear()
