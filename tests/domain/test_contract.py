"""The one place that knows where ``django.tasks`` comes from."""

from __future__ import annotations

import subprocess
import sys

import django
import pytest

from django_workqueue.domain import contract

WITHOUT_BACKPORT = """
import sys
sys.modules["django_tasks"] = None
from django.core.exceptions import ImproperlyConfigured
try:
    import django_workqueue.domain.contract
except ImproperlyConfigured as error:
    print(error)
"""


@pytest.mark.parametrize("name", contract.__all__)
def test_every_name_of_the_contract_is_there(name):
    """From Django 6 or from the backport."""
    assert hasattr(contract, name)


def test_contract_is_djangos_where_django_has_one():
    """The backport is for Django 5.2 alone."""
    home = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"

    assert contract.Task.__module__ == f"{home}.base"
    assert (None if django.VERSION >= (6, 0) else "django_tasks") == contract.CONTRACT_APP


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="Django 6 needs no backport.")
def test_missing_backport_is_named_with_the_remedy():
    """An import error deep inside would tell nobody what to install."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_BACKPORT], capture_output=True, text=True, check=True)

    assert "django-workqueue[django52]" in done.stdout
    assert "INSTALLED_APPS" in done.stdout
