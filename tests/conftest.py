"""What every test may use: the choice of tests for a database, and surroundings for processes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection

from django_workqueue.store import Store, store_for
from testproject.localpg import LocalPostgres

DATABASES = {"postgresql", "sqlite"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked for another database than the one in use."""
    others = DATABASES - {settings.TEST_DB}
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in others)]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def store(db: None) -> Store:
    """Return the store as a worker has it, its connection prepared."""
    made = store_for()
    made.prepare()
    return made


@pytest.fixture
def process_environment(transactional_db: None) -> dict[str, str]:
    """Return the environment for a process that is to work on this test's database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(settings.BASE_DIR.parent),
        "WORKQUEUE_TEST_DB": settings.TEST_DB,
        "WORKQUEUE_TEST_NAME": connection.settings_dict["NAME"],
    }


@pytest.fixture
def own_postgres() -> Iterator[LocalPostgres]:
    """Yield a server of the test's own, to be stopped and restarted without harm to other tests."""
    with LocalPostgres() as server:
        yield server
