"""A fleet and a diary for each test, and the workers' logs where one fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from testproject.localpg import LocalPostgres

from .diary import Diary
from .harness import Fleet
from .proxy import Proxy

TAIL_LINES = 60


@pytest.fixture
def diary(tmp_path: Path) -> Diary:
    """Return an empty diary with closed gates."""
    return Diary(tmp_path)


@pytest.fixture
def fleet(process_environment: dict[str, str], diary: Diary, tmp_path: Path) -> Iterator[Fleet]:
    """
    Yield a fleet without workers, on the test's database. Whatever becomes of the test, none outlives it.

    They end before the tables are emptied: a worker that is still at work may hold locks, or write meanwhile.
    """
    environment = {
        **process_environment,
        "DJANGO_SETTINGS_MODULE": "tests.acceptance.settings",
        "ACCEPTANCE_DIARY": str(tmp_path),
    }
    with Fleet(environment, tmp_path) as fleet:
        yield fleet


@pytest.fixture
def own_database(fleet: Fleet, own_postgres: LocalPostgres) -> Iterator[LocalPostgres]:
    """Let the test and its fleet work on a server of their own, migrated, and yield it."""
    fleet.environment |= {"DATABASE_URL": own_postgres.url, "WORKQUEUE_TEST_NAME": "postgres"}
    connection.close()
    # In place, as the test runner itself does: connections of other threads share the dict.
    usual = dict(connection.settings_dict)
    connection.settings_dict.update(
        HOST=str(own_postgres.socket_dir), PORT="", NAME="postgres", USER="postgres", PASSWORD=""
    )
    try:
        call_command("migrate", verbosity=0)
        yield own_postgres
    finally:
        fleet.close()
        connection.close()
        connection.settings_dict.update(usual)


@pytest.fixture
def proxy(fleet: Fleet) -> Iterator[Proxy]:
    """Yield a proxy through which the fleet talks to its server."""
    with Proxy(connection.settings_dict) as proxy:
        fleet.environment["ACCEPTANCE_PORT"] = str(proxy.port)
        yield proxy
        fleet.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Show what the workers of a failed test printed."""
    report = yield
    fleet = getattr(item, "funcargs", {}).get("fleet")
    if report.failed and fleet is not None:
        for worker in fleet.workers:
            tail = "\n".join(worker.log.splitlines()[-TAIL_LINES:])
            report.sections.append((f"{worker.name} (exit code {worker.exit_code})", tail))
    return report
