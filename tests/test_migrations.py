"""Migrations: the package's own, whatever key type a project prefers; reversible; with storage set where it matters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models

from django_workqueue.models import Job, Lease

ROOT = Path(__file__).resolve().parent.parent

#: Asks with another default key type than the one that the package was made with.
MAKE_MIGRATIONS = """
import sys
import django
from django.conf import settings
from testproject import settings as project

names = {name: getattr(project, name) for name in dir(project) if name.isupper()}
names["DATABASES"] = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
settings.configure(**names | {"DEFAULT_AUTO_FIELD": sys.argv[1]})
django.setup()
from django.core.management import call_command
call_command("makemigrations", "django_workqueue", check=True, dry_run=True)
"""


class SmallKey(models.SmallAutoField):
    """A key type of the project's own."""


@pytest.mark.parametrize(
    "key", ["django.db.models.AutoField", "django.db.models.BigAutoField", "tests.test_migrations.SmallKey"]
)
def test_no_migration_is_invented_for_another_default_key(key):
    """The app pins its key type (celery/django-celery-beat#406)."""
    done = subprocess.run(
        [sys.executable, "-c", MAKE_MIGRATIONS, key], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "No changes detected" in done.stdout


def test_every_key_is_pinned():
    """No model leaves its key to a setting."""
    for model in apps.get_app_config("django_workqueue").get_models():
        assert not getattr(model._meta.pk, "auto_created", False), model


@pytest.mark.django_db(transaction=True)
def test_migrations_can_be_taken_back_and_applied_again():
    """A deploy that failed is rolled back."""
    ours = {model._meta.db_table for model in apps.get_app_config("django_workqueue").get_models()}
    try:
        call_command("migrate", "django_workqueue", "zero", verbosity=0)
        assert ours.isdisjoint(connection.introspection.table_names())
    finally:
        call_command("migrate", "django_workqueue", verbosity=0)

    assert ours <= set(connection.introspection.table_names())


@pytest.mark.postgresql
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Job, {"autovacuum_vacuum_scale_factor=0", "vacuum_truncate=off"}),
        (Lease, {"autovacuum_vacuum_scale_factor=0", "vacuum_truncate=off", "fillfactor=50"}),
    ],
)
def test_hot_tables_are_vacuumed_by_the_work_done(model, expected):
    """A fifth of the table, the default, is a burst's worth of dead rows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table])
        [options] = cursor.fetchone()

    assert expected <= set(options)
