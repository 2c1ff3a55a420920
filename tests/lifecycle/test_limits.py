"""Limits from the enqueue to the claim: keys, queues, tenants, rates and depth."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.db import OperationalError, transaction

from django_workqueue.domain.rotation import Rotation
from django_workqueue.domain.states import JobState, PauseKind
from django_workqueue.exceptions import InvalidJobError, QueueFullError
from django_workqueue.lifecycle import claim as claiming
from django_workqueue.lifecycle import limits, operate
from django_workqueue.lifecycle.schedule import tick
from django_workqueue.models import FinishedJob, Job, Queue, Schedule
from django_workqueue.store import store_for
from django_workqueue.testing import drain
from tests import samples
from tests.claims import complete
from tests.factories import DeadLetterFactory, JobFactory

from .test_schedule import let_due, plan

pytestmark = pytest.mark.django_db(transaction=True)

PRINTER = ("default", "", "printer")


@pytest.fixture
def store():
    """Return a store that is fit for a worker's statements."""
    made = store_for()
    made.prepare()
    return made


def states() -> dict[str, int]:
    """Count the live jobs by state."""
    return dict(Counter(Job.objects.values_list("state", flat=True)))


def printing(limit=1, **more):
    """Return a task whose jobs share one key."""
    return samples.add.using(concurrency_key="printer", concurrency_limit=limit, **more)


def claim(store, rotation=None, limit=10, queue="default"):
    """Claim as a worker does, once."""
    rotation = Rotation() if rotation is None else rotation
    rotation.learn(store.lanes(queue))
    return claiming.claim(store, rotation, queue=queue, worker="worker-1", limit=limit, pauses=store.pauses())


# -- keys --------------------------------------------------------------------------------------------------------------


def test_jobs_of_a_key_are_admitted_after_the_commit():
    """Before it nobody else could count them."""
    with transaction.atomic():
        printing(2).enqueue_many([(1, 1)] * 3)
        assert states() == {"blocked": 3}

    assert states() == {"ready": 2, "blocked": 1}


def test_key_may_be_made_from_the_arguments():
    """None means no key, as with dedupe keys."""
    task = samples.add.using(concurrency_key=lambda left, right: None if left == right else f"{left}")
    task.enqueue_many([(1, 2), (1, 3), (2, 3), (4, 4)])

    keys = Job.objects.order_by("id").values_list("concurrency_key", "concurrency_limit", "state")
    assert list(keys) == [("1", 1, "ready"), ("1", 1, "blocked"), ("2", 1, "ready"), (None, None, "ready")]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"concurrency_limit": 0}, "concurrency_limit is 0"),
        ({"concurrency_limit": 32768}, "concurrency_limit is 32768"),
        ({"concurrency_limit": True}, "concurrency_limit is True"),
        ({"concurrency_key": ""}, "concurrency_key is empty"),
        ({"concurrency_key": "k" * 201}, "concurrency_key has 201 characters"),
        ({"concurrency_key": lambda *_args: 7}, "The concurrency_key of tests.samples.add answered 7"),
        ({"dedupe_ttl": 0}, "dedupe_ttl is zero"),
        ({"dedupe_ttl": -1}, "dedupe_ttl is .*from zero to a century"),
    ],
)
def test_limit_that_cannot_be_is_refused(options, problem):
    """By name, and before anything is written."""
    with pytest.raises(InvalidJobError, match=problem):
        samples.add.using(**options).enqueue(1, 2)

    assert not Job.objects.exists()


def test_each_end_of_a_job_lets_the_next_one_go():
    """Down to the last, in a drain as in a worker."""
    printing().enqueue_many([(number, 1) for number in range(5)])

    assert [attempt.result for attempt in drain()] == [1, 2, 3, 4, 5]


def test_failed_admission_is_mended_by_the_sweep(store, monkeypatch, caplog):
    """The database may be away just then; the job is stored, and nobody's enqueue fails."""
    monkeypatch.setattr(type(store), "admit", Mock(side_effect=OperationalError("away")))
    printing().enqueue(1, 2)
    assert states() == {"blocked": 1}
    assert "wait for the next sweep" in caplog.text
    monkeypatch.undo()

    assert limits.Sweep().run(store) == {("default", "")}
    assert states() == {"ready": 1}


def test_sweep_goes_on_where_it_stopped(store, monkeypatch):
    """Of very many keys each is looked at in turn."""
    monkeypatch.setattr(limits, "KEYS_AT_ONCE", 2)
    for number in range(5):
        JobFactory(state=JobState.BLOCKED, concurrency_key=f"key-{number}", concurrency_limit=1)
    sweep = limits.Sweep()

    counts = []
    for _ in range(3):
        sweep.run(store)
        counts.append(states().get("ready"))
    assert counts == [2, 4, 5]
    assert sweep.is_at_the_beginning


def test_lost_workers_slot_is_free_when_its_lease_is_reaped(store):
    """Not before: until then the job may still run."""
    printing(max_attempts=1).enqueue_many([(1, 1)] * 2)
    claim(store)
    limits.Sweep().run(store)
    assert states() == {"leased": 1, "blocked": 1}

    store.shift(31)
    operate.reap_once()
    assert states() == {"ready": 1}


def test_cancelled_job_frees_its_slot():
    """It waited in it, and never runs."""
    first, _ = printing().enqueue_many([(1, 1)] * 2)

    operate.cancel([Job.objects.get(pk=first.id).pk])

    assert states() == {"ready": 1}
    assert FinishedJob.objects.count() == 1


def test_requeued_dead_letter_waits_for_its_slot():
    """And is admitted at once where one is free."""
    letters = [DeadLetterFactory(concurrency_key="printer", concurrency_limit=1) for _ in range(2)]

    operate.requeue([letter.pk for letter in letters])

    assert states() == {"ready": 1, "blocked": 1}


# -- queues and tenants ------------------------------------------------------------------------------------------------


def test_no_more_of_a_queue_are_leased_than_its_limit(store, settings):
    """Whoever claims, and however much."""
    settings.WORKQUEUE = {"CONCURRENCY": 3}
    samples.add.enqueue_many([(1, 1)] * 5)
    rotation = Rotation()

    assert len(claim(store, rotation, limit=2)) == 2
    [held] = claim(store, rotation, limit=10)
    assert claim(store, rotation) == []
    assert rotation.hold == claiming.HOLD
    assert len(rotation) == 1

    complete(store, held)
    assert len(claim(store, rotation)) == 1


def test_tenant_at_its_limit_is_passed(store, settings):
    """Its lane is kept, others have their turn, and it comes back when it has room."""
    settings.WORKQUEUE = {"QUEUES": {"default": {"TENANT_CONCURRENCY": 2}}}
    samples.add.using(tenant="acme").enqueue_many([(1, 1)] * 5)
    samples.add.using(tenant="beta").enqueue_many([(1, 1)] * 1)
    rotation = Rotation()

    taken = [job for _ in range(4) for job in claim(store, rotation)]

    assert Counter(job.tenant for job in taken) == {"acme": 2, "beta": 1}
    assert rotation.hold == claiming.HOLD
    assert "acme" in rotation
    for job in taken:
        complete(store, job, last=False)
    assert Counter(job.tenant for job in claim(store, rotation)) == {"acme": 2}


def test_many_tenants_at_their_limit_hide_nobody(store, settings):
    """A claim looks at some lanes at once; those behind a hundred full ones have their turn all the same."""
    settings.WORKQUEUE = {"TENANT_CONCURRENCY": 1}
    JobFactory.create_batch(20, tenant="a-free-one-at-the-end")
    for number in range(15):
        JobFactory.create_batch(2, tenant=f"t{number:02}")
    rotation = Rotation()

    taken = [job for _ in range(30) for job in claim(store, rotation, limit=1)]

    assert len({job.tenant for job in taken}) == len(taken) == 16


def test_unlimited_queue_beside_a_limited_one_takes_no_lock(store, settings, monkeypatch):
    """Limits are free where they are off."""
    settings.WORKQUEUE = {"QUEUES": {"mail": {"CONCURRENCY": 1, "RATE": "1/m"}}}
    monkeypatch.setattr(type(store), "exclusive", Mock(side_effect=AssertionError))
    samples.add.enqueue(1, 2)

    assert len(claim(store)) == 1


def test_queue_whose_row_is_held_is_left_for_a_while(store, settings, monkeypatch):
    """Somebody's long transaction must not fail the worker's round."""
    settings.WORKQUEUE = {"CONCURRENCY": 1}
    monkeypatch.setattr(type(store), "exclusive", Mock(side_effect=OperationalError("held")))
    monkeypatch.setattr(type(store), "is_locked", lambda _self, _error: True)
    samples.add.enqueue(1, 2)
    rotation = Rotation()

    assert claim(store, rotation) == []
    assert rotation.hold == claiming.HOLD


# -- rate --------------------------------------------------------------------------------------------------------------


def test_no_more_are_begun_in_a_window_than_the_rate_says(store, settings):
    """The next window begins with the first job after it, and the wait for it is known."""
    settings.WORKQUEUE = {"RATE": "3/m"}
    samples.add.enqueue_many([(1, 1)] * 5)
    rotation = Rotation()

    assert len(claim(store, rotation, limit=2)) == 2
    assert len(claim(store, rotation, limit=2)) == 1
    assert claim(store, rotation) == []
    assert rotation.hold is not None
    assert rotation.hold.firm
    assert timedelta(seconds=50) < rotation.hold.wait <= timedelta(seconds=60)

    store.shift(61)
    assert len(claim(store)) == 2
    assert Queue.objects.get().window_taken == 2


def test_drain_lets_the_windows_pass(settings):
    """Tests need not wait for them; without time to pass, the rest stays."""
    settings.WORKQUEUE = {"RATE": (2, 60)}
    samples.add.enqueue_many([(1, 1)] * 5)

    assert len(drain()) == 2
    assert len(drain(until=timedelta(minutes=10))) == 3


def test_parked_jobs_take_nothing_of_a_rate(store, settings):
    """They were not begun."""
    settings.WORKQUEUE = {"RATE": "2/m"}
    operate.pause(task=samples.add, by="olga")
    samples.add.enqueue_many([(1, 1)] * 5)
    samples.return_it.enqueue(1)

    assert [attempt.task for attempt in drain()] == ["tests.samples.return_it"]
    assert states() == {"parked": 5}


# -- depth -------------------------------------------------------------------------------------------------------------


def test_enqueue_past_the_depth_is_refused(settings):
    """With the facts, for the tenant alone, and it may try again."""
    settings.WORKQUEUE = {"TENANT_DEPTH": 2}
    task = samples.add.using(tenant="acme")
    task.enqueue_many([(1, 1)] * 2)

    with pytest.raises(QueueFullError, match="has 2 waiting jobs of tenant 'acme' and may have 2") as refused:
        task.enqueue(1, 1)
    error = refused.value
    assert (error.queue, error.tenant, error.depth, error.limit, error.retryable) == ("default", "acme", 2, 2, True)

    samples.add.using(tenant="beta").enqueue(1, 1)
    task.using(queue_name="mail").enqueue(1, 1)
    assert Job.objects.count() == 4


def test_batch_past_the_depth_is_refused_whole(settings):
    """And the caller's transaction goes on."""
    settings.WORKQUEUE = {"TENANT_DEPTH": 3}
    with transaction.atomic():
        samples.add.enqueue(1, 1)
        with pytest.raises(QueueFullError):
            samples.bill.enqueue_many([(1,), (2,), (3,)])
        with pytest.raises(QueueFullError):
            samples.add.enqueue_many([(1, 1)] * 3)
        samples.add.enqueue_many([(1, 1)] * 2)

    assert Job.objects.count() == 3


def test_duplicate_is_answered_however_deep_the_queue_is(settings):
    """It is no further job; nor is a batch of which only so many are new as there is room for."""
    settings.WORKQUEUE = {"TENANT_DEPTH": 3}
    first, second = samples.bill.enqueue_many([(1,), (2,)])

    answered = samples.bill.enqueue_many([(1,), (2,), (3,)])
    assert [result.duplicate for result in answered] == [True, True, False]
    assert samples.bill.enqueue(1).id == first.id
    with pytest.raises(QueueFullError):
        samples.bill.enqueue_many([(2,), (4,)])
    assert Job.objects.count() == 3
    assert second.id != first.id


def test_firing_into_a_full_queue_is_put_off_and_not_dropped(store, settings):
    """The queue has room again some day; a daily job must not be a day late for it."""
    settings.WORKQUEUE = {"TENANT_DEPTH": 1}
    row, good = plan(store), plan(store, tenant="acme")
    let_due(row, timedelta(seconds=5))
    let_due(good)
    in_the_way = JobFactory()

    assert tick(store).lanes == {(good.queue, "acme")}
    assert (Schedule.objects.get(pk=row.pk).fault, tick(store).wait) == ("", timedelta())

    Job.objects.filter(pk=in_the_way.pk).delete()
    assert tick(store).lanes == {(row.queue, "")}


def test_jobs_that_could_not_run_now_do_not_count(settings):
    """What runs, and what is scheduled, is neither counted nor refused."""
    settings.WORKQUEUE = {"TENANT_DEPTH": 1}
    JobFactory(leased=True)
    JobFactory(scheduled=True)
    samples.add.enqueue(1, 1)

    samples.add.using(run_after=timedelta(hours=1)).enqueue(1, 1)
    with pytest.raises(QueueFullError):
        printing().enqueue(1, 1)


def test_blocked_jobs_count(settings):
    """A key's backlog is one of its tenant."""
    settings.WORKQUEUE = {"TENANT_DEPTH": 2}
    printing().enqueue_many([(1, 1)] * 2)

    with pytest.raises(QueueFullError):
        samples.add.enqueue(1, 1)


# -- dedupe keys that expire -------------------------------------------------------------------------------------------


def test_expired_key_goes_to_the_next_enqueue(store):
    """The job before runs on without it; by the database's clock, and not a moment too soon."""
    task = samples.bill.using(dedupe_ttl=60)
    first = task.enqueue(1)
    store.shift(59)
    assert task.enqueue(1).id == first.id

    store.shift(2)
    second = task.enqueue(1)
    assert not second.duplicate
    assert task.enqueue(1).id == second.id
    assert list(Job.objects.order_by("id").values_list("dedupe_key", flat=True)) == [None, "order-1"]
    assert [attempt.ending for attempt in drain()] == ["succeeded"] * 2


def test_key_without_a_time_never_expires(store):
    """Also where the one who asks brings a time."""
    first = samples.bill.enqueue(1)
    store.shift(10**6)

    assert samples.bill.using(dedupe_ttl=1).enqueue(1).id == first.id


def test_expired_keys_are_taken_over_in_batches(store):
    """Those that have not expired are answered as ever."""
    samples.bill.using(dedupe_ttl=timedelta(seconds=10)).enqueue_many([(number,) for number in range(30)])
    samples.bill.enqueue_many([(number,) for number in range(30, 40)])
    store.shift(11)

    results = samples.bill.enqueue_many([(number,) for number in range(45)])

    assert [result.duplicate for result in results] == [False] * 30 + [True] * 10 + [False] * 5
    assert Job.objects.count() == 75


# -- pauses ------------------------------------------------------------------------------------------------------------


def test_paused_tenants_lanes_are_left_out(store):
    """In every queue; the others have their turn."""
    for tenant in ("acme", "beta"):
        samples.add.using(tenant=tenant).enqueue(1, 1)
    operate.pause(tenant="acme", by="olga")
    rotation = Rotation()

    assert [job.tenant for job in claim(store, rotation)] == ["beta"]
    assert claim(store, rotation) == []
    assert "acme" in rotation

    operate.resume(tenant="acme")
    assert [job.tenant for job in claim(store, rotation)] == ["acme"]


def test_jobs_of_a_paused_task_are_parked_and_others_pass(store):
    """Claimed with them, and no attempt of theirs is counted."""
    samples.add.enqueue_many([(1, 1)] * 3)
    samples.return_it.enqueue(1)
    operate.pause(task="tests.samples.add", by="olga")

    jobs = claim(store)

    assert [job.task for job in jobs] == ["tests.samples.return_it"]
    assert states() == {"parked": 3, "leased": 1}
    assert operate.resume(task=samples.add)
    assert states() == {"ready": 3, "leased": 1}
    assert set(Job.objects.ready().values_list("attempts", flat=True)) == {0}


def test_resume_that_died_half_way_is_mended(store):
    """The pause is gone, and its jobs are still parked."""
    JobFactory.create_batch(3, state=JobState.PARKED)
    JobFactory(state=JobState.PARKED, task="shop.tasks.other")
    store.pause(PauseKind.TASK, "shop.tasks.other", "olga")

    assert limits.Sweep().run(store) == {("default", "")}
    assert states() == {"ready": 3, "parked": 1}


def test_parked_job_with_a_key_gives_its_slot_up_and_asks_for_it_again(store):
    """Else a paused task would hold up the other tasks of the key."""
    printing().enqueue(1, 1)
    samples.return_it.using(concurrency_key="printer").enqueue(1)
    operate.pause(task=samples.add, by="olga")
    claim(store)
    assert states() == {"parked": 1, "blocked": 1}
    limits.let_all_go(store)
    assert states() == {"parked": 1, "ready": 1}

    operate.resume(task=samples.add)
    assert states() == {"blocked": 1, "ready": 1}


def test_pauses_are_told_once(caplog):
    """A stopped queue is something to know of; pausing it again is not."""
    assert [operate.pause("mail/", by="olga") for _ in range(2)] == [True, False]
    assert [operate.resume("mail") for _ in range(2)] == [True, False]

    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "'mail' was paused by olga" in caplog.messages[0]
    assert Queue.objects.filter(pk="mail").exists()


@pytest.mark.parametrize(
    "named", [{}, {"queue": "a", "task": "b"}, {"queue": ""}, {"queue": "x" * 101}, {"task": ""}, {"tenant": 7}]
)
def test_pause_of_what_cannot_be_is_refused(named):
    """A pause that no job could ever meet would look as if it worked."""
    with pytest.raises(InvalidJobError):
        operate.pause(**named, by="olga")
    assert operate.paused() == []
