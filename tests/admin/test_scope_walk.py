"""Who may see one tenant goes through every page that there is, and finds nothing of another's."""

from __future__ import annotations

import contextlib

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, reverse

from django_workqueue.models import DeadLetter, Failure, FinishedJob, Job, Pause, Schedule, Step, Workflow
from tests import scoping
from tests.admin.pages import page
from tests.admin.rivals import QUEUE, RIVAL, WORD, rival_rows
from tests.factories import (
    DeadLetterFactory,
    FinishedJobFactory,
    JobFactory,
    PauseFactory,
    QueueFactory,
    ScheduleFactory,
    WorkerFactory,
    WorkflowFactory,
)

pytestmark = pytest.mark.django_db

APP = "django_workqueue"
ANSWERS = {
    "confirmed": "yes", "reason": "because", "note": "seen", "args": "[1]", "kwargs": "{}", "queue": "", "attempts": "",
    "kind": "tenant", "name": RIVAL, "tenant": RIVAL, "minutes": "1",
}  # fmt: skip
"""What a form of any page might be filled in with."""


@pytest.fixture
def rivals():
    """Return rows of another tenant, by model."""
    return rival_rows()


@pytest.fixture
def own():
    """Return rows of acme, and some that are nobody's, by model."""
    job = JobFactory(tenant="acme", leased=True)
    return {
        "job": job,
        "lease": job.lease,
        "finishedjob": FinishedJobFactory(tenant="acme"),
        "deadletter": DeadLetterFactory(tenant="acme"),
        "workflow": WorkflowFactory(tenant="acme"),
        "schedule": ScheduleFactory(tenant="acme"),
        "pause": PauseFactory(kind="tenant", name="acme"),
        "queue": QueueFactory(name="default"),
        "worker": WorkerFactory(id="web1:1:5f3a"),
    }


def screens():
    """Return the admin of every model of ours."""
    return [screen for model, screen in admin.site._registry.items() if model._meta.app_label == APP]


def text(response):
    """Return what a browser is sent, page or file."""
    return (response.getvalue() if response.streaming else response.content).decode()


def pages():
    """Yield the screen and the name of every page that the screens have."""
    for screen in screens():
        for pattern in screen.get_urls():
            if pattern.name is not None:
                yield screen.opts.model_name, f"admin:{pattern.name}"


def lists():
    """Return the addresses of the pages that are not about one row."""
    found = {"/admin/", f"/admin/{APP}/"}
    for _model, name in pages():
        with contextlib.suppress(NoReverseMatch):
            found.add(reverse(name))
    return sorted(found)


def rows_pages(*rows):
    """Return the addresses of every page about one of ``rows``."""
    found = set()
    for model, name in pages():
        for each in rows:
            with contextlib.suppress(NoReverseMatch):
                found.add(reverse(name, args=[quote(each[model].pk)] if model in each else ["7"]))
    return sorted(found)


def stored(rows):
    """Return all that the database holds of the rivals."""
    kept = {name: type(row)._default_manager.filter(pk=row.pk).values().first() for name, row in rows.items()}
    tables = (Job, FinishedJob, DeadLetter, Workflow, Schedule, Step)
    counts = {model.__name__: model.objects.filter(tenant=RIVAL).count() for model in tables}
    return kept, counts, Failure.objects.filter(message=WORD).count(), Pause.objects.filter(name=RIVAL).count()


def queries(rows):
    """Return what somebody might type behind an address to see more."""
    letter, job = rows["deadletter"], rows["job"]
    yield from ("", f"?q=tenant:{RIVAL}", f"?tenant={RIVAL}", f"?queue={QUEUE}", f"?q=id:{job.pk}", f"?q={RIVAL}")
    yield from (f"?fingerprint={letter.fingerprint}", f"?q=lease:{rows['lease'].pk}", f"?q=id:{letter.pk}")
    yield from (
        f"?after={job.pk}&from={job.pk}",
        f"?after={letter.died_at.isoformat()}~{letter.pk}".replace("+", "%2B"),
    )


def test_no_page_shows_a_word_of_another_tenant(vera, rivals, own):
    """Ids in addresses, filters, searches and places in lists: a tempting query finds nothing."""
    shown = 0
    of_lists = [each + query for each in lists() for query in queries(rivals)]
    for each in [*of_lists, *rows_pages(rivals, own)]:
        response = vera.get(each, follow=True)
        assert response.status_code in {200, 400, 403, 404, 405}, each
        assert WORD not in text(response), each
        shown += response.status_code == 200
    assert shown > 100


def test_the_same_pages_show_the_word_to_who_may_see_all(vera, rivals, own):
    """Otherwise the test above would say nothing."""
    scoping.grants["vera"] = None

    for name in rivals.keys() - {"pause", "lease"}:
        assert WORD in vera.get(page(name)).content.decode(), name
    for name in rivals.keys() - {"pause"}:
        assert WORD in vera.get(page(name, rivals[name].pk)).content.decode(), name
    assert WORD in vera.get(page("deadletter", name="groups")).content.decode()


def test_no_page_acts_on_what_is_anothers(vera, rivals, own):
    """Whatever is posted wherever, by who has every permission: not a column of the rival's rows is another."""
    before = stored(rivals)

    tempting = ("", f"?q=tenant:{RIVAL}", f"?fingerprint={rivals['deadletter'].fingerprint}")
    of_lists = [each + query for each in lists() for query in tempting]
    for each in [*of_lists, *rows_pages(rivals)]:
        assert WORD not in text(vera.post(each, ANSWERS, follow=True)), each

    assert stored(rivals) == before
    assert not LogEntry.objects.filter(object_repr__contains=WORD).exists()


@pytest.mark.parametrize("across", ["0", "1"])
def test_no_action_of_a_list_acts_on_what_is_anothers(vera, rivals, own, rf, across):
    """The keys of the ticked rows come from the browser, and so does the wish for all of them."""
    before = stored(rivals)
    request = rf.get("/")
    request.user = vera.get("/admin/").wsgi_request.user

    for screen in screens():
        for action in screen.get_actions(request):
            name = screen.opts.model_name
            keys = [rivals[name].pk] if name in rivals else ["default"]
            posted = {"action": action, "_selected_action": keys, "index": 0}
            response = vera.post(page(name), {**ANSWERS, **posted, "select_across": across}, follow=True)
            assert WORD not in text(response), (name, action)

    assert stored(rivals) == before
