"""What every screen has in common."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.core.management import call_command
from django.test import Client

from django_workqueue import admin as screens
from django_workqueue import models
from tests.admin.pages import SCREENS, Elements, page

pytestmark = pytest.mark.django_db


OPERATIONS = {
    "deadletter": (
        ("requeue", "amend", "acknowledge", "discard", "copy"),
        ("requeue", "acknowledge", "discard", "copy"),
    ),
    "finishedjob": (("copy",), ("copy",)),
    "job": (("run_now", "move", "cancel", "force_cancel"), ("run_now", "move", "cancel")),
}
"""What has a page for one row, and what for all that match."""


class LaggingReplica:
    """A router that sends every read and write of the queue's models to a database that is not there."""

    def db_for_read(self, model, **_hints):
        """Return the replica."""
        return "replica" if model._meta.app_label == "django_workqueue" else None

    db_for_write = db_for_read


def doors(model, key):
    """Return every address of a screen."""
    addresses = [
        page(model),
        page(model, key),
        page(model, key, name="history"),
        page(model, name="add"),
        page(model, key, name="delete"),
    ]
    one, every = OPERATIONS.get(model, ((), ()))
    addresses += [page(model, key, name=name) for name in one]
    addresses += [page(model, name=f"all_{name}") for name in every]
    return addresses


@pytest.mark.parametrize("model", SCREENS)
def test_every_door_asks_for_a_login(client, model):
    """Arguments of jobs are data of customers."""
    row = SCREENS[model]()

    for address in doors(model, row.pk):
        for response in (client.get(address), client.post(address)):
            assert response.status_code == 302, address
            assert response.url.startswith("/admin/login/")


@pytest.mark.parametrize("model", SCREENS)
def test_every_door_asks_for_a_permission(browser, model):
    """Being staff opens no screen, and the permission of one screen does not open the next."""
    others = [f"view_{name}" for name in SCREENS if name != model]
    client, row = browser(*others), SCREENS[model]()

    for address in doors(model, row.pk):
        for response in (client.get(address), client.post(address)):
            assert response.status_code == 403, address


@pytest.mark.parametrize("model", SCREENS)
def test_viewer_sees_and_changes_nothing(viewer, model):
    """The permission to look is only that: no address writes, by GET or by POST."""
    row = SCREENS[model]()
    before = list(type(row).objects.values())

    statuses = [(viewer.get(address).status_code, viewer.post(address).status_code) for address in doors(model, row.pk)]

    assert statuses[:3] == [(200, 200), (200, 403), (200, 200)]
    assert set(statuses[3:]) == {(403, 403)}
    assert list(type(row).objects.values()) == before


@pytest.mark.parametrize("model", SCREENS)
def test_viewer_is_offered_nothing_to_do(viewer, model):
    """A button that ends in a refusal is worse than none. What they see they may take along as a file."""
    row = SCREENS[model]()

    for address in (page(model), page(model, row.pk)):
        response = viewer.get(address)
        content = response.content.decode()
        offered = {attributes.get("value") for tag, attributes in Elements(response).found if tag == "option"}
        assert offered <= {"", "export"}
        assert "Requeue" not in content
        assert "Discard" not in content
        assert "_save" not in content


@pytest.mark.parametrize("model", SCREENS)
def test_get_changes_nothing(operator, model):
    """A link in a mail, or a browser that fetches ahead, must not act (ontohub PR#1451, django-rq PR#307)."""
    row = SCREENS[model]()
    before = list(type(row).objects.values())

    for address in doors(model, row.pk):
        operator.get(address)
        operator.get(address, {"action": "discard", "_selected_action": row.pk, "confirmed": "yes", "index": 0})
        operator.head(address)

    assert list(type(row).objects.values()) == before


@pytest.mark.parametrize("name", ["requeue", "discard"])
def test_post_without_a_token_is_refused(browser, name):
    """Another site must not act through the browser of someone who is logged in (sidekiq, django-rq PR#307)."""
    client = browser("view_deadletter", f"{name}_deadletter", csrf=True)
    letter = SCREENS["deadletter"]()
    data = {"action": name, "_selected_action": letter.pk, "confirmed": "yes", "reason": "tried"}

    assert client.post(page("deadletter", letter.pk, name=name)).status_code == 403
    assert client.post(page("deadletter"), data).status_code == 403
    assert models.DeadLetter.objects.get() == letter

    token = client.get(page("deadletter", letter.pk, name=name)).context["csrf_token"]
    answer = {"csrfmiddlewaretoken": str(token), "reason": "tried"}
    assert client.post(page("deadletter", letter.pk, name=name), answer).status_code == 302
    assert not models.DeadLetter.objects.exists()


@pytest.mark.parametrize("model", SCREENS)
def test_queue_is_read_where_it_is_written(operator, settings, model):
    """A router that sends reads to a lagging replica would show as waiting what has long run."""
    row = SCREENS[model]()
    settings.DATABASE_ROUTERS = [f"{__name__}.LaggingReplica"]

    for address in doors(model, row.pk):
        assert operator.get(address).status_code in {200, 403}, address


@pytest.mark.parametrize("name", ["requeue", "discard"])
def test_operations_go_where_the_queue_is(operator, settings, name):
    """The same holds for what a person does."""
    letters = SCREENS["deadletter"].create_batch(2)
    settings.DATABASE_ROUTERS = [f"{__name__}.LaggingReplica"]

    answer = {"reason": "tried"}
    operator.post(page("deadletter", letters[0].pk, name=name), answer)
    operator.post(page("deadletter"), {"action": name, "_selected_action": letters[1].pk, "confirmed": "yes"} | answer)

    assert not models.DeadLetter.objects.using("default").exists()


@pytest.mark.parametrize("key", ["x", "0", "-1", "9" * 30, "a\x00b", "_5F", "../..", "%"])
@pytest.mark.parametrize("model", SCREENS)
def test_address_of_a_row_that_cannot_be_leads_away(viewer, model, key):
    """What is no key is not an error of the server."""
    assert viewer.get(page(model, key), follow=True).status_code == 200


def test_mixins_make_screens_for_another_site():
    """A project builds its own classes, with a theme's ModelAdmin, and registers those."""
    site = admin.AdminSite(name="other")
    for name in ("DeadLetter", "FinishedJob", "Job", "Lease", "Queue", "Worker"):
        mixin = getattr(screens, f"{name}AdminMixin")
        own = type(f"Own{name}Admin", (mixin, admin.ModelAdmin), {})
        site.register(getattr(models, name), own)

    assert not [message for screen in site._registry.values() for message in screen.check()]


def test_admin_passes_its_checks():
    """A screen that names a column which is not there would fail only when it is opened."""
    call_command("check", "--fail-level", "WARNING")


def test_index_lists_the_screens_that_may_be_seen(browser):
    """The way in is the index of the admin."""
    content = browser("view_deadletter").get("/admin/").content.decode()

    assert page("deadletter") in content
    assert page("job") not in content


def test_anonymous_confirmation_is_a_login():
    """The pages of our own are wrapped as Django wraps its own."""
    letter = SCREENS["deadletter"]()

    assert "/login/" in Client().get(page("deadletter", letter.pk, name="requeue")).url
