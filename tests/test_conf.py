"""``WORKQUEUE``: read into frozen values, and every fault named with its key and a hint."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_workqueue.conf import ALL_KEYS, APP_KEYS, BACKOFF_KEYS, POLICY_KEYS, find_faults, get_settings
from django_workqueue.domain.limits import Limits, Rate
from django_workqueue.domain.policies import BackoffPolicy

SECONDS = {
    key for key, (_, parse) in {**POLICY_KEYS, **BACKOFF_KEYS, **APP_KEYS}.items() if "seconds" in parse.__name__
}


def test_defaults_are_the_documented_ones(settings):
    """A project that sets nothing has them."""
    settings.WORKQUEUE = {}
    found = get_settings()

    assert (found.policy.lease, found.policy.max_lease) == (timedelta(seconds=30), timedelta(hours=1))
    assert (found.policy.max_attempts, found.policy.retention) == (5, timedelta(days=1))
    assert found.policy.backoff == BackoffPolicy()
    assert (found.database, found.dead_retention, found.heartbeat) == ("default", None, None)
    assert (found.max_payload_bytes, found.unknown_task_patience) == (262_144, timedelta(hours=1))
    assert (found.poll_interval, found.reap_interval) == (timedelta(seconds=1), timedelta(seconds=5))


def test_missing_setting_is_the_defaults(settings):
    """WORKQUEUE need not exist."""
    del settings.WORKQUEUE

    assert get_settings().database == "default"
    assert find_faults() == []


@pytest.mark.parametrize("value", [5, 5.0, timedelta(seconds=5)])
@pytest.mark.parametrize("key", sorted(SECONDS))
def test_durations_are_seconds_or_timedeltas(settings, key, value):
    """One rule for every one of them."""
    settings.WORKQUEUE = {key: value}

    attribute = {**POLICY_KEYS, **BACKOFF_KEYS, **APP_KEYS}[key][0]
    found = get_settings()
    owner = found.policy.backoff if key in BACKOFF_KEYS else found.policy if key in POLICY_KEYS else found
    assert getattr(owner, attribute) == timedelta(seconds=5)


def test_queue_overrides_what_it_names_and_inherits_the_rest(settings):
    """Also parts of the backoff."""
    settings.WORKQUEUE = {
        "LEASE": 60,
        "BACKOFF": 2,
        "QUEUES": {"reports": {"MAX_LEASE": 7200, "BACKOFF_CAP": 100}},
    }

    reports, other = get_settings().queue("reports"), get_settings().queue("mail")

    assert (reports.lease, reports.max_lease) == (timedelta(seconds=60), timedelta(hours=2))
    assert reports.backoff == BackoffPolicy(base=timedelta(seconds=2), cap=timedelta(seconds=100))
    assert other.backoff.cap == timedelta(seconds=600)
    assert other == get_settings().policy


def test_beat_is_a_third_of_the_shortest_lease(settings):
    """One beat serves all queues (janbjorge/pgqueuer#430)."""
    settings.WORKQUEUE = {"LEASE": 30, "QUEUES": {"quick": {"LEASE": 6}}}
    assert get_settings().beat == timedelta(seconds=2)

    settings.WORKQUEUE = {"LEASE": 30, "HEARTBEAT": 1}
    assert get_settings().beat == timedelta(seconds=1)


def test_change_of_the_setting_takes_effect(settings):
    """``override_settings`` is not ignored."""
    settings.WORKQUEUE = {"LEASE": 10}
    assert get_settings().policy.lease == timedelta(seconds=10)
    settings.WORKQUEUE = {"LEASE": 20}

    assert get_settings().policy.lease == timedelta(seconds=20)


def test_settings_are_read_once(settings):
    """They are asked for at every enqueue."""
    assert get_settings() is get_settings()


def test_settings_cannot_be_changed_in_place():
    """A change that no process was told of would hold in one only."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        get_settings().database = "other"


@pytest.mark.parametrize(
    ("raw", "key", "message"),
    [
        ([], "WORKQUEUE", "must be a dict"),
        (None, "WORKQUEUE", "must be a dict"),
        ({"LEASE": 0}, "WORKQUEUE['LEASE']", "must be more than zero"),
        ({"LEASE": -1}, "WORKQUEUE['LEASE']", "must not be negative"),
        ({"LEASE": 10**10}, "WORKQUEUE['LEASE']", "must not be longer than a century"),
        ({"LEASE": "30"}, "WORKQUEUE['LEASE']", "must be a timedelta or a number of seconds"),
        ({"LEASE": True}, "WORKQUEUE['LEASE']", "must be a timedelta or a number of seconds"),
        ({"LEASE": None}, "WORKQUEUE['LEASE']", "must be a timedelta or a number of seconds"),
        ({"RETENTION": -1}, "WORKQUEUE['RETENTION']", "must not be negative"),
        ({"MAX_ATTEMPTS": 0}, "WORKQUEUE['MAX_ATTEMPTS']", "must be a whole number from 1 to 32767"),
        ({"MAX_ATTEMPTS": 2.5}, "WORKQUEUE['MAX_ATTEMPTS']", "must be a whole number from 1 to 32767"),
        ({"JITTER": 1.5}, "WORKQUEUE['JITTER']", "must be a number from 0 to 1"),
        ({"JITTER": "0"}, "WORKQUEUE['JITTER']", "must be a number from 0 to 1"),
        ({"MAX_PAYLOAD_BYTES": 0}, "WORKQUEUE['MAX_PAYLOAD_BYTES']", "must be a whole number of bytes"),
        ({"DATABASE": ""}, "WORKQUEUE['DATABASE']", "must be a non-empty string"),
        ({"ALIASES": {"a": 1}}, "WORKQUEUE['ALIASES']", "must map former dotted paths"),
        ({"ALIASES": ["a"]}, "WORKQUEUE['ALIASES']", "must map former dotted paths"),
        ({"QUEUES": ["mail"]}, "WORKQUEUE['QUEUES']", "must map queue names to dicts"),
        ({"QUEUES": {"mail": 5}}, "WORKQUEUE['QUEUES']", "must map queue names to dicts"),
        ({"QUEUES": {"mail": {"LEASE": 0}}}, "WORKQUEUE['QUEUES']['mail']['LEASE']", "must be more than zero"),
        ({"QUEUES": {"mail": {"DATABASE": "x"}}}, "WORKQUEUE['QUEUES']['mail']['DATABASE']", "is not a setting"),
    ],
)
def test_fault_is_named_by_its_key(settings, raw, key, message):
    """The checks report it, and whoever needs the settings is refused with the same words."""
    settings.WORKQUEUE = raw

    [fault] = find_faults()
    assert fault.key == key
    assert fault.message.startswith(message)
    assert fault.hint
    with pytest.raises(ImproperlyConfigured, match=message):
        get_settings()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 10**400])
def test_duration_beyond_all_measure_is_a_fault(settings, value):
    """And no OverflowError in the middle of a worker."""
    settings.WORKQUEUE = {"LEASE": value}

    [fault] = find_faults()
    assert fault.key == "WORKQUEUE['LEASE']"


@pytest.mark.parametrize(
    ("typed", "meant"), [("LEESE", "LEASE"), ("max_attempts", "MAX_ATTEMPTS"), ("RETENTIONS", "RETENTION")]
)
def test_misspelt_key_is_told_what_was_meant(settings, typed, meant):
    """It would be ignored in silence otherwise."""
    settings.WORKQUEUE = {typed: 5}

    [fault] = find_faults()
    assert fault.hint == f"Did you mean {meant!r}?"


def test_unlike_key_is_told_all_keys(settings):
    """Nothing to guess."""
    settings.WORKQUEUE = {"COLOUR": "red"}

    [fault] = find_faults()
    assert all(key in fault.hint for key in ALL_KEYS)


def test_all_faults_are_told_at_once(settings):
    """Not one per restart."""
    settings.WORKQUEUE = {"LEASE": 0, "JITTER": 2, "COLOUR": 1, 7: 1, "QUEUES": {"mail": {"RETENTION": "x"}}}

    assert len(find_faults()) == 5


COUNTS = ("CONCURRENCY", "TENANT_CONCURRENCY", "TENANT_DEPTH")

# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        (None, None),
        ("100/m", Rate(100, timedelta(minutes=1))),
        (" 5 / h ", Rate(5, timedelta(hours=1))),
        ((50, 10), Rate(50, timedelta(seconds=10))),
        ([1, timedelta(days=2)], Rate(1, timedelta(days=2))),
    ],
)
def test_rate_is_a_text_or_a_pair(settings, value, rate):
    """For each queue by itself."""
    settings.WORKQUEUE = {"CONCURRENCY": 3, "QUEUES": {"mail": {"RATE": value, "TENANT_CONCURRENCY": 2}}}

    assert get_settings().queue("mail").limits == Limits(concurrency=3, tenant_concurrency=2, rate=rate)
    assert get_settings().queue("other").limits == Limits(concurrency=3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("RATE", value) for value in ("100", "/m", "1/y", "-1/m", "0/m", "1.5/m", "²/m", 99, (1,), (0, 5), (1, 0))),
        *(("RATE", value) for value in ((True, 5), ("1", 5), (1, "m"), (3_000_000_000, 1))),
        *(
            (key, value)
            for key in ("CONCURRENCY", "TENANT_CONCURRENCY", "TENANT_DEPTH")
            for value in (0, -1, "3", True)
        ),
    ],
)
def test_limit_that_cannot_work_is_a_fault(settings, key, value):
    """Named by its key, before a worker starts."""
    settings.WORKQUEUE = {"QUEUES": {"mail": {key: value}}}

    assert [fault.key for fault in find_faults()] == [f"WORKQUEUE['QUEUES']['mail'][{key!r}]"]


def test_depth_is_looked_at_only_where_it_is_bounded(settings):
    """An enqueue must not pay for what nobody set."""
    settings.WORKQUEUE = {"QUEUES": {"mail": {}}}
    assert not get_settings().bounds_depth
    settings.WORKQUEUE = {"QUEUES": {"mail": {"TENANT_DEPTH": 5}}}
    assert get_settings().bounds_depth
