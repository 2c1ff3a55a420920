"""What a person decides about one dead letter, a group or all that match, and the job that does the large ones."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from django_workqueue.admin.bulk import home
from django_workqueue.models import DeadLetter, FinishedJob, Job
from django_workqueue.testing import drain
from tests.admin.conftest import VIEWS
from tests.admin.pages import Elements, listed, page, told
from tests.admin.test_escaping import HOSTILE, assert_harmless
from tests.factories import DeadLetterFactory, JobFactory

pytestmark = pytest.mark.django_db

ADD = {"task": "tests.samples.add", "args": "[1,2]", "kwargs": "{}"}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("django_workqueue.admin.bulk.PAUSE", 0)


def all_page(name, query=""):
    """Return the address of an operation on all that match."""
    return page("deadletter", name=f"all_{name}", query=query)


def log():
    """Return the words of the log, oldest first."""
    return list(LogEntry.objects.order_by("id").values_list("change_message", flat=True))


def test_requeue_spread_to_another_queue_with_further_attempts(operator):
    """A vendor that was down is not to be met by ten thousand calls at once."""
    letters = DeadLetterFactory.create_batch(5, attempts=5)
    answer = {"minutes": 10, "queue": "slow", "attempts": 2, "reason": "vendor is back"}

    operator.post(all_page("requeue"), answer)

    jobs = list(Job.objects.all())
    assert {(job.state, job.queue, job.max_attempts - job.attempts) for job in jobs} == {("scheduled", "slow", 2)}
    assert len({job.ready_at for job in jobs}) == 5
    assert max(job.ready_at for job in jobs) - min(job.ready_at for job in jobs) < timedelta(minutes=10)
    assert {job.pk for job in jobs} == {letter.pk for letter in letters}
    words = "Requeued. Spread over minutes: 10. To the queue: slow. Further attempts: 2. Reason: vendor is back."
    assert log() == [words] * 5


def test_one_letter_comes_back_with_other_arguments(operator):
    """The order number was wrong, and the job is not."""
    letter = DeadLetterFactory(**ADD)
    address = page("deadletter", letter.pk, name="amend")
    asked = operator.get(address).content.decode()
    assert "[1, 2]" in asked

    operator.post(address, {"args": "[3, 4]", "kwargs": "{}", "reason": "typing error"})

    job = Job.objects.get()
    assert (job.pk, job.args, job.state) == (letter.pk, "[3,4]", "ready")
    assert log() == ["Requeued with other arguments. Reason: typing error."]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ("[1", "Enter a valid JSON."),
        ('{"a": 1}', "Write a JSON list"),
        ("[1, 2, 3]", "too many positional arguments"),
        ("[NaN, 1]", "left as it is"),
        ('["\\ud800", 1]', "left as it is"),
    ],
)
def test_arguments_are_checked_as_at_enqueue(operator, args, problem):
    """What an enqueue would refuse does not come in by this door; what was typed is still there."""
    letter = DeadLetterFactory(**ADD)

    response = operator.post(page("deadletter", letter.pk, name="amend"), {"args": args, "kwargs": "{}"})

    assert problem in response.content.decode() or any(problem in text for text in told(response))
    assert DeadLetter.objects.get().args == "[1,2]"
    assert not Job.objects.exists()
    assert log() == []


def test_acknowledged_letters_tell_who_and_why_and_can_be_left_out(operator):
    """The next on call sees that somebody is at it."""
    seen, unseen = DeadLetterFactory.create_batch(2)

    operator.post(page("deadletter", seen.pk, name="acknowledge"), {"note": "waits for the vendor"})

    seen.refresh_from_db()
    assert (seen.acknowledged_by, seen.note) == ("vera", "waits for the vendor")
    assert seen.acknowledged_at is not None
    assert listed(operator.get(page("deadletter", query="?acknowledged=no"))) == [unseen.pk]
    assert listed(operator.get(page("deadletter", query="?acknowledged=yes"))) == [seen.pk]
    assert listed(operator.get(page("deadletter", query="?acknowledged=x"))) == []
    assert log() == ["Acknowledged. Note: waits for the vendor."]


def test_discard_asks_for_a_reason(operator):
    """What is gone for good is gone for a reason that the log tells."""
    DeadLetterFactory()

    response = operator.post(all_page("discard"), {"reason": " "})

    assert b"This field is required" in response.content
    assert DeadLetter.objects.exists()


def test_whole_group_is_decided_from_the_page_of_groups(operator):
    """One line, one decision; the other causes stay."""
    DeadLetterFactory.create_batch(3, last_error="ValueError: no 1")
    other = DeadLetterFactory(last_error="KeyError: 'x'")
    rows = operator.get(page("deadletter", name="groups")).context["rows"]
    (group,) = [row for row in rows if row.size == 3]
    address = {str(label): address for label, address in group.operations}["Discard…"]

    assert b"3 dead letters are selected" in operator.get(address).content
    operator.post(address, {"reason": "shop closed"})

    assert list(DeadLetter.objects.all()) == [other]


def test_filter_without_choices_still_holds(operator):
    """With no row in the table of queues the filter offers nothing; passing it over would reach every letter."""
    DeadLetterFactory()

    assert b"0 dead letters are selected" in operator.get(all_page("requeue", "?queue=mail")).content
    operator.post(all_page("requeue", "?queue=mail"))

    assert DeadLetter.objects.exists()


def test_large_operation_is_a_job_that_skips_clashes_and_names_them(operator):
    """A hundred thousand in one request would outlive its proxy; one clash must not end it."""
    DeadLetterFactory.create_batch(120, tenant="acme")
    clashing = DeadLetterFactory(tenant="acme", dedupe_key="order-1")
    holder = JobFactory(tenant="acme", queue="default", dedupe_key="order-1", scheduled=True)
    DeadLetterFactory()

    asked = operator.get(all_page("requeue", "?q=tenant:acme"))
    response = operator.post(all_page("requeue", "?q=tenant:acme"), {"queue": "", "reason": "vendor is back"})

    assert b"121 dead letters are selected" in asked.content
    assert b"A job of the queue" in asked.content
    job = Job.objects.get(task="django_workqueue.admin.bulk.decide")
    assert response.url == page("job", job.pk)
    assert DeadLetter.objects.count() == 122
    drain("default", max_jobs=1)
    done = FinishedJob.objects.get(pk=job.pk)
    result = json.loads(done.result)
    assert (result["done"], result["left_as_they_are"]) == (120, 1)
    assert str(clashing.pk) in result["problems"][0]
    assert str(holder.pk) in result["problems"][0]
    assert DeadLetter.objects.count() == 2
    first, *others = log()
    assert first.startswith("Requeue dead letters: all that match q=tenant%3Aacme.")
    assert others == ["Requeued. Reason: vendor is back."] * 120
    marks = {live.decoded_metadata["_replay"] for live in Job.objects.exclude(pk=holder.pk)}
    assert marks == {json.loads(job.kwargs)["options"]["replay"]}


def test_job_asks_again_whether_the_person_may(operator):
    """Between the click and the job a person may have lost the permission."""
    DeadLetterFactory.create_batch(101)
    operator.post(all_page("discard"), {"reason": "old"})
    User.objects.get(username="vera").user_permissions.clear()

    drain("default", max_jobs=1, raise_errors=False)

    assert DeadLetter.objects.filter(task="shop.tasks.send_receipt").count() == 101
    assert "may not discard" in DeadLetter.objects.get(reason="rejected").last_error


def test_what_dies_after_the_decision_is_not_part_of_it(operator):
    """A discard of everything must not take what nobody has seen."""
    DeadLetterFactory.create_batch(101)
    operator.post(all_page("discard"), {"reason": "old"})
    from django.utils import timezone  # noqa: PLC0415 - beside its use

    late = DeadLetterFactory(died_at=timezone.now() + timedelta(minutes=1))

    drain("default", max_jobs=1)

    assert list(DeadLetter.objects.all()) == [late]


@pytest.mark.parametrize("kept", ["requeue", "amend", "acknowledge", "discard"])
def test_every_door_of_an_operation_asks_for_its_permission(browser, kept):
    """Actions, pages of one, pages of all: each checks by itself."""
    client, letter = browser(*VIEWS, f"{kept}_deadletter"), DeadLetterFactory(**ADD)

    for name in {"requeue", "amend", "acknowledge", "discard"} - {kept}:
        doors = [page("deadletter", letter.pk, name=name)]
        doors += [all_page(name)] if name != "amend" else []
        for door in doors:
            assert client.get(door).status_code == 403
            assert client.post(door, {"reason": "x"}).status_code == 403
    assert DeadLetter.objects.get().acknowledged_at is None
    assert log() == []


def test_viewer_is_offered_nothing(viewer):
    """Who may only look sees no link to a decision."""
    letter = DeadLetterFactory()
    for address in (page("deadletter"), page("deadletter", letter.pk), page("deadletter", name="groups")):
        links = [attributes.get("href", "") for _tag, attributes in Elements(viewer.get(address)).found]
        assert not [link for link in links if "/all/" in link or link.endswith(("/amend/", "/acknowledge/"))]


def test_pages_of_decisions_escape_what_they_show(operator):
    """Task, arguments, note and reason are text of strangers."""
    letter = DeadLetterFactory(task=HOSTILE[:300], args=json.dumps([HOSTILE]), note=HOSTILE)

    assert_harmless(operator.get(page("deadletter", letter.pk, name="amend")))
    assert_harmless(operator.get(all_page("discard")))
    posted = {"args": HOSTILE, "kwargs": HOSTILE, "queue": HOSTILE, "reason": HOSTILE}
    assert_harmless(operator.post(page("deadletter", letter.pk, name="amend"), posted))


@pytest.mark.parametrize(
    ("tasks", "backend", "queue"),
    [
        ({}, "default", "default"),
        ({"default": {"QUEUES": []}}, "default", "default"),
        ({"work": {}}, "work", "default"),
        ({"default": {"QUEUES": ["slow", "mail"]}}, "default", "mail"),
    ],
)
def test_job_is_put_where_the_project_permits(tasks, backend, queue):
    """A task that the backend refuses could not even be imported, nor could the admin."""
    assert home(tasks) == {"backend": backend, "queue_name": queue}
