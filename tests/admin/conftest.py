"""Browsers of people with the permissions that a test names."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests import scoping

VIEWS = (
    "view_deadletter", "view_finishedjob", "view_job", "view_lease", "view_pause", "view_queue", "view_schedule",
    "view_worker", "view_workflow",
)  # fmt: skip


@pytest.fixture
def browser(db):
    """Return a function that logs in a member of staff with the permissions that it is given."""

    def login(*permissions, csrf=False):
        person = User.objects.create_user("vera", is_staff=True)
        ours = Permission.objects.filter(content_type__app_label="django_workqueue")
        person.user_permissions.set(ours.get(codename=name) for name in permissions)
        client = Client(enforce_csrf_checks=csrf)
        client.force_login(person)
        return client

    return login


@pytest.fixture
def viewer(browser):
    """Return the browser of someone who may look at everything and do nothing."""
    return browser(*VIEWS)


@pytest.fixture
def operator(browser):
    """Return the browser of someone who may look at everything, decide about dead letters."""
    return browser(*VIEWS, *(f"{name}_deadletter" for name in ("requeue", "amend", "acknowledge", "discard")))


@pytest.fixture
def vera(settings, browser):
    """Return the browser of someone with every permission there is, for the tenant acme alone."""
    settings.WORKQUEUE = scoping.SETTING
    scoping.grants["vera"] = ["acme"]
    ours = Permission.objects.filter(content_type__app_label="django_workqueue")
    yield browser(*ours.values_list("codename", flat=True))
    scoping.grants.clear()
