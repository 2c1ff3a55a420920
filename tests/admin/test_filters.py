"""The filters beside the lists."""

from __future__ import annotations

import pytest

from django_workqueue.admin import filters
from tests.admin.pages import Elements, listed, page
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, QueueFactory, ago

pytestmark = pytest.mark.django_db


def choices(response):
    """Return the choices of each filter, by its title."""
    changelist = response.context["cl"]
    return {
        str(spec.title): [str(choice["display"]) for choice in spec.choices(changelist)]
        for spec in changelist.filter_specs
    }


def test_jobs_are_filtered_by_state(viewer):
    """What waits, what is due later and what runs are three questions."""
    jobs = {
        "ready": JobFactory(),
        "scheduled": JobFactory(scheduled=True),
        "leased": JobFactory(leased=True),
    }

    for state, job in jobs.items():
        assert listed(viewer.get(page("job"), {"state": state})) == [job.pk]


def test_dead_letters_are_filtered_by_reason(viewer):
    """Jobs that their task rejected want another answer than those that used up their attempts."""
    DeadLetterFactory()
    rejected = DeadLetterFactory(rejected=True)

    assert listed(viewer.get(page("deadletter"), {"reason": "rejected"})) == [rejected.pk]


def test_finished_jobs_are_filtered_by_outcome(viewer):
    """Cancelled jobs are finished, too."""
    FinishedJobFactory()
    cancelled = FinishedJobFactory(cancelled=True)

    assert listed(viewer.get(page("finishedjob"), {"outcome": "cancelled"})) == [cancelled.pk]


@pytest.mark.parametrize(
    ("model", "factory"),
    [("job", JobFactory), ("deadletter", DeadLetterFactory), ("finishedjob", FinishedJobFactory)],
)
def test_queues_are_offered_from_their_own_table(viewer, django_assert_num_queries, model, factory):
    """The names come from a row per queue; DISTINCT over the jobs would read all of them."""
    QueueFactory(name="mail")
    QueueFactory(name="default")
    wanted = factory(queue="mail")
    factory(queue="default")

    response = viewer.get(page(model), {"queue": "mail"})

    assert listed(response) == [wanted.pk]
    assert choices(response)["queue"] == ["All", "default", "mail"]


def test_number_of_queues_offered_is_bounded(viewer, monkeypatch):
    """A project with a queue per customer still gets a page; queue: in the search box finds the others."""
    monkeypatch.setattr(filters, "QUEUE_CHOICES", 2)
    QueueFactory.create_batch(4)
    wanted = JobFactory(queue="queue-hidden")

    assert len(choices(viewer.get(page("job")))["queue"]) == 3
    assert listed(viewer.get(page("job"), {"queue": "queue-hidden"})) == [wanted.pk]


@pytest.mark.parametrize("query", ["?args__contains=x", "?lease__worker=x", "?metadata__icontains=x", "?id__gt=0"])
def test_lookup_that_no_filter_offers_is_refused(viewer, query):
    """An address made by hand must not scan ten million rows."""
    assert viewer.get(page("job", query=query)).status_code == 400


PLACES = [("job", JobFactory), ("deadletter", DeadLetterFactory), ("finishedjob", FinishedJobFactory)]


def test_wait_for_the_next_try_is_a_state_of_its_own(viewer):
    """It is stored as scheduled, and a person wants to know which of the scheduled have failed."""
    JobFactory(scheduled=True)
    retry = JobFactory(scheduled=True, attempts=2)

    response = viewer.get(page("job"), {"state": "retry"})

    assert listed(response) == [retry.pk]
    assert "Waiting for retry</span>" in response.content.decode()


@pytest.mark.parametrize(("model", "factory"), PLACES)
def test_tasks_and_tenants_are_typed(viewer, model, factory):
    """To offer them, the whole table would have to be read; the other filters stay."""
    factory(task="shop.tasks.send", tenant="globex")
    factory(task="reports.tasks.build", tenant="acme")
    wanted = factory(task="shop.tasks.charge", tenant="acme")

    response = viewer.get(page(model), {"task": "shop.", "tenant": "acme"})

    assert listed(response) == [wanted.pk]
    fields = [attributes for tag, attributes in Elements(response).found if tag == "input"]
    assert {(each["type"], each.get("value")) for each in fields if each.get("name") == "tenant"} == {
        ("text", "acme"),
        ("hidden", "acme"),
    }


@pytest.mark.parametrize("model", ["job", "finishedjob"])
def test_priorities_are_filtered_by_where_they_lie(viewer, model):
    """Who was put before the others, and who behind."""
    factory = dict(PLACES)[model]
    jobs = {word: factory(priority=number) for word, number in (("raised", 7), ("usual", 0), ("lowered", -1))}

    for word, job in jobs.items():
        assert listed(viewer.get(page(model), {"priority": word})) == [job.pk]
    assert listed(viewer.get(page(model), {"priority": "x"})) == []


@pytest.mark.parametrize(
    ("model", "factory", "column"),
    [
        ("job", JobFactory, "enqueued"),
        ("finishedjob", FinishedJobFactory, "enqueued"),
        ("deadletter", DeadLetterFactory, "died"),
    ],
)
def test_windows_of_time_are_fixed(viewer, model, factory, column):
    """A calendar of days would group the whole table."""
    row = factory(**{f"{column}_at": ago(minutes=30)})
    older = factory(**{f"{column}_at": ago(days=3)})
    factory(**{f"{column}_at": ago(days=30)})

    assert listed(viewer.get(page(model), {column: "1h"})) == [row.pk]
    assert set(listed(viewer.get(page(model), {column: "7d"}))) == {row.pk, older.pk}
    assert listed(viewer.get(page(model), {column: "x"})) == []


def test_late_jobs_are_those_that_wait_past_their_time(viewer):
    """Ready for long, or due and promoted by nobody. A job that runs is not late any more."""
    ready = JobFactory(ready_at=ago(minutes=20))
    due = JobFactory(scheduled=True, ready_at=ago(minutes=15))
    JobFactory(leased=True, ready_at=ago(hours=2))
    JobFactory(ready_at=ago(seconds=5))
    JobFactory(scheduled=True)

    assert set(listed(viewer.get(page("job"), {"late": "10m"}))) == {ready.pk, due.pk}
    assert listed(viewer.get(page("job"), {"late": "1h"})) == []


@pytest.mark.parametrize(
    "query",
    [
        "?task=shop",
        "?tenant=acme",
        "?priority=usual",
        "?enqueued=1h",
        "?late=1m",
        "?q=error:ValueError",
    ],
)
def test_filter_without_an_index_looks_through_a_window(viewer, monkeypatch, query):
    """Whatever is asked for, the newest rows are looked through, and a person says whether to look further."""
    monkeypatch.setattr("django_workqueue.admin.changelist.BoundedChangeList.window", 3)
    JobFactory.create_batch(5, enqueued_at=ago(minutes=1), ready_at=ago(seconds=1), state="parked")

    found = viewer.get(page("job", query=query)).context["cl"]

    assert found.further is not None
    assert found.result_count <= 3


@pytest.mark.parametrize("state", ["ready", "scheduled", "retry", "leased"])
def test_few_jobs_in_a_state_are_found_behind_any_number_of_newer_ones(viewer, monkeypatch, state):
    """The three that wait are what a person looks for, not that they are not among the newest."""
    monkeypatch.setattr("django_workqueue.admin.changelist.BoundedChangeList.window", 3)
    wanted = {
        "ready": {},
        "scheduled": {"scheduled": True},
        "retry": {"scheduled": True, "attempts": 1},
        "leased": {"leased": True},
    }
    job = JobFactory(**wanted[state])
    JobFactory.create_batch(9, state="parked")

    response = viewer.get(page("job", query=f"?state={state}"))

    assert listed(response) == [job.pk]
    assert response.context["cl"].further is None
