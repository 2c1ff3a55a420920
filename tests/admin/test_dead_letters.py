"""The screen of dead letters, and what a person may do about them."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry

from django_workqueue.domain.ids import new_id
from django_workqueue.models import DeadLetter, Failure, Job
from django_workqueue.testing import drain
from tests.admin.conftest import VIEWS
from tests.admin.pages import Elements, page, told
from tests.factories import DeadLetterFactory, JobFactory

pytestmark = pytest.mark.django_db

OPERATIONS = ("requeue", "discard")


def act(client, name, *letters, query="", **more):
    """Run an action of the list on ``letters``; ``confirmed="yes"`` answers the question."""
    data = {"action": name, "_selected_action": [letter.pk for letter in letters], "reason": "tried", **more}
    return client.post(page("deadletter", query=query), data)


def logged():
    """Return what the log of the admin says: on which object, what kind of change, in which words."""
    rows = LogEntry.objects.order_by("id").values_list("object_id", "action_flag", "change_message")
    return list(rows)


def test_requeued_letter_is_a_ready_job_with_fresh_attempts(operator):
    """Attempts that were kept would bury it again at the first failure (gbrain#2974, bull-board#737)."""
    letter = DeadLetterFactory(attempts=5, max_attempts=5, failures=5)

    response = act(operator, "requeue", letter, confirmed="yes")

    job = Job.objects.get()
    assert (job.pk, job.state, job.max_attempts - job.attempts) == (letter.pk, "ready", 5)
    assert not DeadLetter.objects.exists()
    assert Failure.objects.filter(job_id=letter.pk).count() == 5
    assert told(response) == ["1 dead letter was requeued."]
    assert logged() == [(str(letter.pk), CHANGE, "Requeued. Reason: tried.")]


def test_discarded_letter_goes_with_its_failures(operator):
    """What a person gives up is gone whole; what was not selected stays."""
    letters = DeadLetterFactory.create_batch(2, failures=2)
    kept = DeadLetterFactory(failures=1)

    response = act(operator, "discard", *letters, confirmed="yes")

    assert list(DeadLetter.objects.all()) == [kept]
    assert Failure.objects.count() == 1
    assert told(response) == ["2 dead letters were discarded."]
    assert {entry[1:] for entry in logged()} == {(DELETION, "Discarded. Reason: tried.")}
    assert {entry[0] for entry in logged()} == {str(letter.pk) for letter in letters}


@pytest.mark.parametrize("name", OPERATIONS)
def test_action_asks_before_it_acts(operator, name):
    """One wrong choice in a list must not run or destroy a hundred jobs."""
    letters = DeadLetterFactory.create_batch(12)

    response = act(operator, name, *letters, index=0)

    content = " ".join(response.content.decode().split())
    assert "12 dead letters are selected" in content
    assert content.count("<li>shop.tasks.send_receipt ") == 10
    assert DeadLetter.objects.count() == 12
    assert logged() == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_confirmation_posts_what_was_selected(operator, name):
    """The button on the page does to the selection what the action was asked for."""
    letters = DeadLetterFactory.create_batch(2)
    DeadLetterFactory()
    asked = act(operator, name, *letters, index=0)
    fields = [attributes for tag, attributes in Elements(asked).found if tag == "input"]
    data = {}
    for field in fields:
        if field.get("type") == "hidden" and field["name"] != "csrfmiddlewaretoken":
            data.setdefault(field["name"], []).append(field["value"])

    operator.post(page("deadletter"), data | {"reason": "tried"})

    assert {entry[0] for entry in logged()} == {str(letter.pk) for letter in letters}
    assert DeadLetter.objects.count() == 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_letter_has_a_page_for_each_operation(operator, name):
    """Read first, then decide, on the same page; GET asks, POST does, and leads back to the list as it was."""
    letter = DeadLetterFactory()
    own = operator.get(page("deadletter", letter.pk, query="?_changelist_filters=reason%3Dexhausted"))
    address = page("deadletter", letter.pk, name=name, query="?_changelist_filters=reason%3Dexhausted")
    assert address in [attributes.get("href") for tag, attributes in Elements(own).found if tag == "a"]

    asked = operator.get(address)
    assert b"1 dead letter is selected" in asked.content
    assert DeadLetter.objects.exists()

    done = operator.post(address, {"reason": "tried"})
    assert done.url == page("deadletter", query="?reason=exhausted")
    assert not DeadLetter.objects.exists()
    assert [entry[0] for entry in logged()] == [str(letter.pk)]


def test_clash_is_refused_by_name_and_stops_nothing_else(operator):
    """One key that is live again must not keep the others from coming back (procrastinate#1512)."""
    clashing, free = DeadLetterFactory(dedupe_key="order-17"), DeadLetterFactory()
    live = JobFactory(dedupe_key="order-17")

    response = act(operator, "requeue", clashing, free, confirmed="yes")

    done, refused = told(response)
    assert done == "1 dead letter was requeued."
    assert refused.startswith("1 dead letter was left as it is. ")
    assert str(clashing.pk) in refused
    assert str(live.pk) in refused
    assert list(DeadLetter.objects.all()) == [clashing]
    assert [entry[0] for entry in logged()] == [str(free.pk)]


def test_many_refusals_are_told_in_a_bounded_message(operator):
    """Messages may travel in a cookie: a thousand refusals must not break the answer."""
    JobFactory.create_batch(1, dedupe_key="a")
    letters = DeadLetterFactory.create_batch(8, dedupe_key="a")

    (refused,) = told(act(operator, "requeue", *letters, confirmed="yes"))

    assert refused.startswith("8 dead letters were left as they are.")
    assert refused.endswith("And 3 more.")


def test_select_all_reaches_past_the_page_and_keeps_to_the_filter(operator):
    """All that match means all pages of the filter, and nothing outside it."""
    DeadLetterFactory.create_batch(130, tenant="acme")
    DeadLetterFactory.create_batch(2)
    query = "?q=tenant:acme"
    first = operator.get(page("deadletter", query=query)).context["cl"].result_list[0]

    asked = act(operator, "requeue", first, query=query, select_across="1", index=0)
    assert b"130 dead letters are selected" in asked.content
    assert ("input", {"type": "hidden", "name": "select_across", "value": "1"}) in Elements(asked).found

    act(operator, "requeue", first, query=query, select_across="1", confirmed="yes")
    drain("default", max_jobs=1)
    assert Job.objects.filter(tenant="acme").count() == 130
    assert DeadLetter.objects.count() == 2


def test_select_all_begins_at_the_newest_whatever_page_is_open(operator):
    """The second page was open when "all" was chosen: all is still all."""
    letters = DeadLetterFactory.create_batch(101)
    older = operator.get(page("deadletter")).context["cl"].older

    act(operator, "requeue", letters[0], query=older, select_across="1", confirmed="yes")
    drain("default", max_jobs=1)

    assert not DeadLetter.objects.exists()


def test_one_request_stops_at_a_limit_and_says_so(operator, monkeypatch):
    """A hundred thousand in one request would outlive its proxy; what is left is said, and can be repeated."""
    monkeypatch.setattr("django_workqueue.admin.operations.LIMIT", 5)
    monkeypatch.setattr("django_workqueue.admin.operations.BATCH", 2)
    monkeypatch.setattr("django_workqueue.admin.operating.LIMIT", 5)
    letters = DeadLetterFactory.create_batch(7)

    asked = act(operator, "discard", letters[0], select_across="1", index=0)
    assert b"At most 5 are handled at a time" in asked.content

    done, more = told(act(operator, "discard", letters[0], select_across="1", confirmed="yes"))
    assert done == "5 dead letters were discarded."
    assert more == "One request handles at most 5 dead letters. Repeat it for those that are left."
    assert list(DeadLetter.objects.all()) == letters[:2]

    operator.get(page("deadletter"))  # reads the messages
    assert told(act(operator, "discard", letters[0], select_across="1", confirmed="yes")) == [
        "2 dead letters were discarded."
    ]


def test_nothing_is_done_that_the_log_does_not_tell(operator, monkeypatch):
    """A change without an entry could never be explained: both are one transaction."""
    letter = DeadLetterFactory()

    def fail(*_args, **_kwargs):
        raise RuntimeError("the log is full")

    monkeypatch.setattr(LogEntry.objects.__class__, "log_actions", fail)

    with pytest.raises(RuntimeError, match="the log is full"):
        act(operator, "requeue", letter, confirmed="yes")
    assert DeadLetter.objects.get() == letter
    assert not Job.objects.exists()


@pytest.mark.parametrize("name", OPERATIONS)
def test_letter_that_does_not_exist_leads_away(operator, name):
    """A bookmark of a dead letter that is gone is not an error of the server."""
    for key in (new_id(), "x", "a\x00b"):
        response = operator.get(page("deadletter", key, name=name), follow=True)
        assert response.status_code == 200
        assert "exist. Perhaps it was deleted?" in response.content.decode()


def test_history_of_a_letter_outlives_its_requeue(operator):
    """Dead again, it shows who put it back before."""
    letter = DeadLetterFactory()
    act(operator, "requeue", letter, confirmed="yes")
    Job.objects.all().delete()
    DeadLetterFactory(id=letter.pk)

    assert b"Requeued." in operator.get(page("deadletter", letter.pk, name="history")).content


@pytest.mark.parametrize("kept", OPERATIONS)
def test_each_operation_has_a_permission_of_its_own(browser, kept):
    """Who may put back may not therefore destroy, nor the other way round."""
    client, letter = browser(*VIEWS, f"{kept}_deadletter"), DeadLetterFactory()
    (other,) = set(OPERATIONS) - {kept}

    content = client.get(page("deadletter", letter.pk)).content.decode()
    assert page("deadletter", letter.pk, name=kept) in content
    assert page("deadletter", letter.pk, name=other) not in content
    assert client.get(page("deadletter", letter.pk, name=other)).status_code == 403
    assert client.post(page("deadletter", letter.pk, name=other)).status_code == 403
    act(client, other, letter, confirmed="yes")

    assert DeadLetter.objects.get() == letter
    assert logged() == []
