"""The page of one job: its times in a row, where it comes from, what was tried, what people did."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User

from django_workqueue.admin import changes
from django_workqueue.lifecycle import operate
from tests.admin.pages import Elements, page
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, LeaseFactory, ago

pytestmark = pytest.mark.django_db

PLACES = {"job": JobFactory, "finishedjob": FinishedJobFactory, "deadletter": DeadLetterFactory}


def stages(response):
    """Return the labels of the moments that a page shows, in order."""
    return [str(stage.label) for stage in response.context["timeline"]]


def links(response):
    """Return where the links of a page lead."""
    return [attributes.get("href") for tag, attributes in Elements(response).found if tag == "a"]


@pytest.mark.parametrize(
    ("model", "columns", "expected"),
    [
        ("job", {}, ["Enqueued", "Ready"]),
        ("job", {"scheduled": True}, ["Enqueued", "Due"]),
        ("job", {"leased": True, "ready_at": ago(seconds=90)}, ["Enqueued", "Ready", "Claimed"]),
        ("finishedjob", {}, ["Enqueued", "Started", "Succeeded"]),
        ("finishedjob", {"cancelled": True}, ["Enqueued", "Cancelled"]),
        ("deadletter", {"rejected": True, "enqueued_at": ago(hours=9)}, ["Enqueued", "Died"]),
        (
            "deadletter",
            {"enqueued_at": ago(hours=9), "failures": 2, "failures__failed_at": ago(hours=2)}
            | {"failures__started_at": ago(hours=1)},
            ["Enqueued", "First failed", "Last attempt", "Died"],
        ),
    ],
)  # fmt: skip
def test_times_are_told_in_their_order(viewer, model, columns, expected):
    """From the enqueue to the end, with how long each took."""
    job = PLACES[model](**columns)

    response = viewer.get(page(model, job.pk))

    assert stages(response) == expected
    first, *others = response.context["timeline"]
    assert first.took == ""
    assert all(stage.took for stage in others)


def test_times_between_are_lengths(viewer):
    """Waited so long, ran so long."""
    job = FinishedJobFactory(enqueued_at=ago(seconds=100), started_at=ago(seconds=60), finished_at=ago(seconds=58))

    content = viewer.get(page("finishedjob", job.pk)).content.decode()

    assert "after 40.0 s" in content
    assert "after 2.0 s" in content


def test_job_of_a_schedule_and_a_copy_lead_to_where_they_come_from(viewer):
    """A job that nobody remembers enqueueing has an origin."""
    original = FinishedJobFactory(task="tests.samples.add", args="[1,2]", kwargs="{}")
    (copy_id,) = operate.copy([original.pk]).copies.values()
    nightly = JobFactory(metadata='{"_schedule":"nightly report"}')

    assert page("finishedjob", original.pk) in links(viewer.get(page("job", copy_id)))
    assert page("schedule", query="?q=nightly+report") in links(viewer.get(page("job", nightly.pk)))


def test_origin_of_a_copy_of_a_dead_letter_is_found(viewer):
    """Wherever the original is by now."""
    letter = DeadLetterFactory(task="tests.samples.add", args="[1,2]", kwargs="{}")
    (copy_id,) = operate.copy([letter.pk]).copies.values()
    address = page("finishedjob", letter.pk)

    assert address in links(viewer.get(page("job", copy_id)))
    assert viewer.get(address, follow=True).context["original"] == letter


@pytest.mark.parametrize("metadata", ["[not json", "[]", '{"_schedule":7,"_copy_of":[],"correlation_id":{}}'])
def test_metadata_that_nobody_expects_do_no_harm(viewer, metadata):
    """The page is there for rows that are odd."""
    job = JobFactory(metadata=metadata)

    assert viewer.get(page("job", job.pk)).status_code == 200


def test_request_that_enqueued_the_job_is_named(viewer):
    """By what stands in its log records and traces."""
    job = JobFactory(metadata='{"correlation_id":"req-17","traceparent":"00-ab-cd-01"}')

    content = viewer.get(page("job", job.pk)).content.decode()

    assert ">req-17<" in content
    assert ">00-ab-cd-01<" in content


@pytest.mark.parametrize("model", PLACES)
def test_stored_texts_can_be_copied(viewer, model):
    """A script adds the button; without one they can be selected."""
    job = PLACES[model](last_error="ValueError: x")

    copied = [attributes for tag, attributes in Elements(viewer.get(page(model, job.pk))).found if tag == "pre"]

    assert len([each for each in copied if "data-copy" in each]) >= 3


def test_what_people_did_follows_the_job(viewer):
    """Put back, cancelled, moved: by whom, when and why, in whatever table it was then."""
    olga = User.objects.create_user("olga")
    job, other = DeadLetterFactory(), DeadLetterFactory()
    for row, words in ((job, "Acknowledged. Note: mine."), (job, "Requeued."), (other, "Discarded.")):
        LogEntry.objects.log_actions(olga.pk, [row], CHANGE, words)
    operate.requeue([job.pk])

    response = viewer.get(page("job", job.pk))

    assert [(change.by, change.what) for change in response.context["changes"]] == [
        ("olga", "Acknowledged. Note: mine."),
        ("olga", "Requeued."),
    ]
    assert "Acknowledged. Note: mine." in response.content.decode()


def test_log_is_looked_through_in_part(viewer, monkeypatch):
    """It has no index over what it tells of, and may have millions of entries."""
    monkeypatch.setattr(changes, "LOOKED_THROUGH", 1)
    olga, job = User.objects.create_user("olga"), JobFactory()
    for words in ("first", "second"):
        LogEntry.objects.log_actions(olga.pk, [job], CHANGE, words)

    assert [change.what for change in viewer.get(page("job", job.pk)).context["changes"]] == ["second"]


def test_attempts_tell_when_they_began_and_what_came_next(viewer):
    """One line for each, its traceback folded."""
    letter = DeadLetterFactory(failures=2, failures__next_try_at=ago(minutes=1))

    content = viewer.get(page("deadletter", letter.pk)).content.decode()

    assert content.count("<summary>Traceback</summary>") == 2
    assert ">Started</th>" in content


@pytest.mark.parametrize(
    ("model", "columns", "expected"),
    [
        ("job", {"leased": True, "attempts": 3}, (3, "Under way")),
        ("finishedjob", {"attempts": 2}, (2, "Succeeded")),
        ("job", {"scheduled": True, "attempts": 2}, None),
        ("finishedjob", {"cancelled": True}, None),
        ("deadletter", {}, None),
    ],
)
def test_attempt_that_did_not_fail_is_told_beside_those_that_did(viewer, model, columns, expected):
    """The one under way, and the one that ended the job, are attempts too."""
    last = viewer.get(page(model, PLACES[model](**columns).pk)).context["last_attempt"]

    assert (last and (last.number, str(last.state))) == expected
    assert last is None or last.worker == "web1:1:5f3a"


def test_page_of_a_held_job_reads_its_lease_once(viewer, django_assert_max_num_queries):
    """Whatever stands on it, the number of statements is fixed."""
    job = JobFactory(leased=True, lease=LeaseFactory())

    with django_assert_max_num_queries(25):
        viewer.get(page("job", job.pk))
