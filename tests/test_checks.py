"""System checks: what cannot work is an error, what is unwise a warning, each with its id and a hint."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.db import connections

from django_workqueue import task
from django_workqueue.checks import check_database, check_hooks, check_schedules, check_settings, check_tasks
from django_workqueue.domain.contract import CONTRACT_APP
from django_workqueue.store import store_for
from tests.samples import add

BACKEND = {"BACKEND": "django_workqueue.backend.WorkQueueBackend"}


def ids(messages) -> list[str]:
    """Return the ids without the app's name."""
    assert all(message.hint for message in messages)
    return [message.id.removeprefix("django_workqueue.") for message in messages]


def found(settings, workqueue) -> list[str]:
    """Return the ids of what is wrong with ``WORKQUEUE``."""
    settings.WORKQUEUE = workqueue
    return ids(check_settings())


def test_defaults_are_sound(settings):
    """A fresh project has nothing to mend."""
    assert found(settings, {}) == []
    assert ids(check_tasks()) == []


@pytest.mark.parametrize(
    ("workqueue", "expected"),
    [
        ({"STEP_RETENTION": 24_751}, []),
        ({"STEP_RETENTION": 24_750}, ["W008"]),
        ({"QUEUES": {"slow": {"MAX_LEASE": 86_400, "MAX_ATTEMPTS": 8}}}, ["W008"]),
        ({"MAX_ATTEMPTS": 32_767, "MAX_LEASE": 3_155_760_000}, ["W008"]),
    ],
)
def test_steps_are_kept_for_longer_than_a_job_is_under_way(settings, workqueue, expected):
    """What is forgotten before the last delivery is done twice: five hours and attempts, and their pauses, fit."""
    assert found(settings, workqueue) == expected


@pytest.mark.parametrize(
    ("workqueue", "expected"),
    [
        ({"TIMEOUT": 60}, []),
        ({"TIMEOUT": 3600}, ["E010"]),
        ({"TIMEOUT": 600, "QUEUES": {"quick": {"MAX_LEASE": 300}}}, ["E010"]),
    ],
)
def test_timeout_comes_before_the_cap(settings, workqueue, expected):
    """The cap ends the lease, and leaves the thread where it is."""
    assert found(settings, workqueue) == expected


@pytest.mark.parametrize(
    ("timeout", "queue", "expected"),
    [
        (299, "quick", []),
        (300, "quick", ["E010"]),
        (timedelta(hours=1), "default", ["E010"]),
        (3599, "default", []),
        (None, "quick", []),
    ],
)
def test_timeout_of_a_task_comes_before_the_cap_of_its_queue(settings, monkeypatch, timeout, queue, expected):
    """The task is named, and so are both values."""
    monkeypatch.setattr("django_workqueue.domain.registry._declared", {})
    settings.WORKQUEUE = {"QUEUES": {"quick": {"MAX_LEASE": 300}}}
    settings.TASKS = {"default": {**BACKEND, "QUEUES": []}}
    task(timeout=timeout, queue_name=queue)(add.func)

    messages = check_tasks()

    assert ids(messages) == expected
    assert all("tests.samples.add" in message.msg and queue in message.msg for message in messages)


@pytest.mark.django_db
def test_project_of_the_suite_passes_all_checks():
    """As ``manage.py check --database default`` runs them."""
    messages = run_checks(databases=["default"])

    assert [message for message in messages if message.id.startswith("django_workqueue")] == []


def test_every_fault_of_the_shape_is_an_error(settings):
    """Each key with its own message."""
    assert found(settings, {"LEASE": 0, "COLOUR": 1}) == ["E002", "E002"]


@pytest.mark.parametrize(
    ("workqueue", "expected"),
    [
        ({"LEASE": 10, "HEARTBEAT": 5}, []),
        ({"LEASE": 10, "HEARTBEAT": 5.1}, ["E003"]),
        ({"LEASE": 10, "HEARTBEAT": 20}, ["E003"]),
        ({"HEARTBEAT": 10, "QUEUES": {"quick": {"LEASE": 6}}}, ["E003"]),
        ({"LEASE": 60, "MAX_LEASE": 30}, ["E004"]),
        ({"QUEUES": {"slow": {"LEASE": 7200}}}, ["E004"]),
        ({"BACKOFF": 60, "BACKOFF_CAP": 30}, ["E005"]),
        ({"DATABASE": "nowhere"}, ["E006"]),
        ({"QUEUES": {"": {}, "mail/": {}, "a\n": {}, "q" * 101: {}, 7: {}, "fine": {}}}, ["E007"] * 5),
    ],
)
def test_pairs_that_cannot_work_are_errors(settings, workqueue, expected):
    """A beat as slow as the lease, a cap below it (Koed00/django-q#183)."""
    assert found(settings, workqueue) == expected


@pytest.mark.parametrize("key", ["ENQUEUE_HOOKS", "RUN_HOOKS"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tests.hooking.missing", "cannot be imported (ImportError: Module"),
        ("no.such.module", "cannot be imported (ModuleNotFoundError"),
        ("hook", "cannot be imported (ImportError: hook doesn't look like a module path"),
        ("tests.hooking.not_a_hook", "which cannot be called"),
    ],
)
def test_hook_that_leads_nowhere_is_an_error(settings, key, path, message):
    """Before a worker starts, and not at the first job of the night."""
    settings.WORKQUEUE = {key: ["django_workqueue.hooks.carry_locale", path]}

    [error] = check_hooks()
    assert ids([error]) == ["E009"]
    assert error.msg.startswith(f"WORKQUEUE['{key}']: The hook '{path}'")
    assert message in error.msg


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tests.scoping.missing", "cannot be imported (ImportError: Module"),
        ("tests.scoping.grants", "which cannot be called"),
        ("tests.scoping.wait_for_tenants", "is a coroutine function"),
    ],
)
def test_scope_that_leads_nowhere_is_an_error(settings, path, message):
    """Before the first page of the night shows nothing."""
    settings.WORKQUEUE = {"TENANT_SCOPE": path}

    [error] = check_hooks()
    assert ids([error]) == ["E022"]
    assert message in error.msg


@pytest.mark.parametrize("value", [["shop.tenants.of"], len, "", 7])
def test_scope_is_one_path(settings, value):
    """Of several it would not be clear which one holds."""
    assert found(settings, {"TENANT_SCOPE": value}) == ["E002"]


def test_scope_that_can_be_called_is_no_fault(settings):
    """And neither is none at all."""
    for value in ("tests.scoping.tenants_of", None):
        assert found(settings, {"TENANT_SCOPE": value}) == []
        assert check_hooks() == []


@pytest.mark.parametrize("value", ["shop.hooks.one", {"shop.hooks.one"}, [len], [""], None])
def test_hooks_are_a_list_of_paths(settings, value):
    """A bare text would be taken for a list of letters."""
    assert found(settings, {"RUN_HOOKS": value}) == ["E002"]
    assert check_hooks() == []


@pytest.mark.parametrize(
    ("entry", "expected", "hint"),
    [
        ({"CRON": "61 * * * *"}, "E020", "cron is '61 * * * *'"),
        ({"CRON": "0 0 30 2 *"}, "E020", "cron is '0 0 30 2 *'"),
        ({"CRON": "0 3 * * *", "CORN": 1}, "E020", "Did you mean 'CRON'?"),
        ({"CRON": "0 3 * * *", "TASK": "tests.samples.nothing"}, "E021", "tests.samples.nothing"),
    ],
)
def test_schedule_that_cannot_be_followed_is_an_error(settings, entry, expected, hint):
    """Found by the deploy's check, and not by nobody in the night (certimate#906); the good one beside it is none."""
    good = {"TASK": "tests.samples.add", "ARGS": [1, 2], "CRON": "0 3 * * *"}
    settings.WORKQUEUE = {"SCHEDULES": {"good": good, "bad": {"TASK": "tests.samples.add", "ARGS": [1, 2]} | entry}}

    [error] = check_schedules()

    assert ids([error]) == [expected]
    assert "['bad']" in error.msg
    assert hint in error.hint


def test_schedules_are_a_dict_of_dicts(settings):
    """The shape of the settings is told first."""
    settings.WORKQUEUE = {"SCHEDULES": ["0 3 * * *"]}

    assert ids(check_settings()) == ["E002"]
    assert check_schedules() == []


def test_slow_heartbeat_names_both_settings(settings):
    """Whoever reads it knows what to change (janbjorge/pgqueuer#430)."""
    settings.WORKQUEUE = {"HEARTBEAT": 10, "QUEUES": {"quick": {"LEASE": 6}}}

    [message] = check_settings()
    assert "HEARTBEAT" in message.msg
    assert "WORKQUEUE['QUEUES']['quick']['LEASE']" in message.msg


def test_other_checks_wait_until_the_shape_is_right(settings):
    """No second error about the same slip."""
    settings.WORKQUEUE = {"LEASE": 0}

    assert check_tasks() == []
    assert check_database(databases=["default"]) == []


def test_project_without_our_backend_is_told(settings):
    """Nothing would ever be stored."""
    settings.TASKS = {}

    assert ids(check_tasks()) == ["W001"]


def test_configured_queue_that_no_backend_permits_is_told(settings):
    """It can never receive a job."""
    settings.TASKS = {"default": {**BACKEND, "QUEUES": ["mail"]}}
    settings.WORKQUEUE = {"QUEUES": {"mial": {}, "mail": {}}}

    [message] = check_tasks()
    assert ids([message]) == ["W002"]
    assert "'mial'" in message.msg


def test_backend_without_a_list_permits_every_configured_queue(settings):
    """One such backend is enough."""
    settings.TASKS = {"default": {**BACKEND, "QUEUES": ["mail"]}, "other": {**BACKEND, "QUEUES": []}}
    settings.WORKQUEUE = {"QUEUES": {"anything": {}}}

    assert check_tasks() == []


@pytest.mark.skipif(CONTRACT_APP is None, reason="Django 6 needs no backport.")
def test_missing_backport_app_is_told(monkeypatch):
    """Its checks and log lines would be missing."""
    real = apps.is_installed
    monkeypatch.setattr(apps, "is_installed", lambda name: name != CONTRACT_APP and real(name))

    assert ids(check_tasks()) == ["E008"]


# -- the database ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_database_is_looked_at_when_it_is_asked_for():
    """``check`` alone must not connect."""
    assert check_database() == []
    assert check_database(databases=[]) == []
    assert check_database(databases=["other"]) == []


@pytest.mark.django_db
def test_database_that_is_not_tested_is_told(monkeypatch):
    """It may work; nobody knows."""
    monkeypatch.setattr(connections["default"], "vendor", "oracle")

    assert ids(check_database(databases=["default"])) == ["W004"]


@pytest.mark.django_db
def test_queue_in_another_database_is_told(settings, monkeypatch):
    """Its enqueues share no transaction with the rest."""
    settings.WORKQUEUE = {"DATABASE": "second"}
    monkeypatch.setattr("django_workqueue.checks.connections", {"second": connections["default"]})
    monkeypatch.setattr("django_workqueue.checks.store_for", lambda alias: store_for("default"))

    assert ids(check_database(databases=["second"])) == ["W003"]


@pytest.mark.sqlite
@pytest.mark.django_db
@pytest.mark.parametrize("mode", [None, "DEFERRED", "deferred"])
def test_sqlite_that_begins_as_a_reader_is_told(monkeypatch, mode):
    """Its transactions fail beside a worker (coleifer/huey#445)."""
    monkeypatch.setitem(connections["default"].settings_dict["OPTIONS"], "transaction_mode", mode)

    assert ids(check_database(databases=["default"])) == ["W005"]


@pytest.mark.sqlite
@pytest.mark.django_db
def test_sqlite_without_write_ahead_log_is_told(monkeypatch):
    """Readers and the worker would wait for each other."""
    monkeypatch.setattr("django_workqueue.store.sqlite.SqliteStore.has_write_ahead_log", lambda self: False)

    [message] = check_database(databases=["default"])
    assert ids([message]) == ["W006"]
    assert "init_command" in message.hint


@pytest.mark.sqlite
@pytest.mark.django_db
def test_sqlite_with_local_times_is_told(settings):
    """When the clocks change, every lease would lapse at once."""
    settings.USE_TZ = False

    assert ids(check_database(databases=["default"])) == ["W007"]


@pytest.mark.postgresql
@pytest.mark.django_db
def test_postgresql_stores_moments_whatever_the_project_reads(settings):
    """Local times are a matter of reading there."""
    settings.USE_TZ = False

    assert check_database(databases=["default"]) == []
