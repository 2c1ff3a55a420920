"""
The statements walk the indexes meant for them, whatever the statistics say.

The planner is shown the worst that happens in practice: a table whose statistics were taken while it was empty, and
which holds 200,000 rows by now, or as many as WORKQUEUE_TEST_ROWS in the environment says: the ceilings hold for
1,000,000 as well. Each statement is carried out with the values known and with a generic plan.
"""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.db import connection

from django_workqueue.domain.ids import new_id
from django_workqueue.domain.outcomes import ClaimedJob
from django_workqueue.domain.rotation import FIRST_RANK, LAST_RANK, LaneTurn, Segment
from django_workqueue.lifecycle import listing, operate
from django_workqueue.lifecycle.listing import Wanted
from django_workqueue.models import Job, Lease, Schedule
from django_workqueue.store import store_for
from tests.claims import fail, order, put_back, succeeded

from .explaining import Plan, explained

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db]

ROWS = int(os.environ.get("WORKQUEUE_TEST_ROWS", "200000"))
JOB, LEASE = Job._meta.db_table, Lease._meta.db_table
SCHEDULE = Schedule._meta.db_table
KEY, LEASE_KEY = f"{JOB}_pkey", f"{LEASE}_pkey"

# What a backlog looks like: 100 tenants, most jobs ready, many scheduled, some leased, a few with a key.
FILL = f"""
INSERT INTO {LEASE} (worker, queue, acquired_at, renewed_at, expires_at, deadline_at)
SELECT 'worker-1', 'default', now(), now(), now() + interval '1 hour', now() + interval '2 hours'
FROM generate_series(1, {{rows}} / 1000);
INSERT INTO {JOB} (id, queue, tenant, task, args, kwargs, priority, attempts, max_attempts, interruptions, dedupe_key,
                   dedupe_until_start, enqueued_at, metadata, last_error, state, ready_at, lapses, lease_id)
SELECT lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n % 20 = 0 THEN 'mail' ELSE 'default' END, 't' || n / 10 % 100,
       'tests.samples.add', '[1,2]', '{{{{}}}}', n / 1000 % 3, 1, 5, 0, CASE WHEN n % 50 = 0 THEN 'key-' || n END,
       false, now(), '{{{{}}}}', '',
       CASE WHEN n % 10 = 9 THEN 'leased' WHEN n % 10 >= 6 THEN 'scheduled' ELSE 'ready' END,
       now() + CASE WHEN n % 10 BETWEEN 6 AND 8 THEN interval '1 hour' ELSE interval '-1 hour' END
             + n * interval '1 millisecond',
       0, CASE WHEN n % 10 = 9 THEN (SELECT min(id) FROM {LEASE}) + n / 10 % ({{rows}} / 1000) END
FROM generate_series(1, {{rows}}) AS n;
"""


def run(*statements: str) -> None:
    """Run statements outside any transaction."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(scope="module", params=["stale", "fresh"])
def backlog(request, django_db_setup, django_db_blocker):
    """Fill the tables, their statistics taken before or after, and leave them empty."""
    with django_db_blocker.unblock():
        for table in (JOB, LEASE):
            run(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        # Pages without rows, as a queue that was worked off has them: now every estimate is one row, for ever.
        run(FILL.format(rows=2000), f"DELETE FROM {JOB}", f"DELETE FROM {LEASE}")
        run(f"VACUUM (ANALYZE) {JOB}", f"VACUUM (ANALYZE) {LEASE}", FILL.format(rows=ROWS))
        if request.param == "fresh":
            run(f"ANALYZE {JOB}", f"ANALYZE {LEASE}")
    yield
    with django_db_blocker.unblock():
        run(f"TRUNCATE {JOB}, {LEASE}")
        for table in (JOB, LEASE):
            run(f"ALTER TABLE {table} RESET (autovacuum_enabled)", f"ANALYZE {table}")


@pytest.fixture(params=["custom", "generic"])
def plans(request, backlog, store, monkeypatch):
    """Return a function that carries out what it is given and returns the plans of what that did to jobs and leases."""

    def plans_of(act) -> list[Plan]:
        with explained(monkeypatch, JOB, LEASE, generic=request.param == "generic") as made:
            act(store)
        return made

    return plans_of


def assert_walks(plan: Plan, *indexes: str, buffers: int, lease_indexes: set[str] | None = None) -> None:
    """State that a plan finds jobs by these indexes alone, within so many pages, and sorts nothing large."""
    assert not plan.kinds & {"Seq Scan", "Bitmap Heap Scan", "Hash Join", "Merge Join"}
    assert plan.indexes(JOB) == set(indexes)
    assert plan.indexes(LEASE) <= (lease_indexes or {LEASE_KEY})
    assert plan.discarded <= 1000
    assert plan.buffers <= buffers


def some_leased(count: int) -> list:
    """Return jobs of one lease as if this worker had claimed them."""
    lease = Lease.objects.earliest("id")
    rows = Job.objects.filter(lease=lease)[:count]
    return [_claimed(row) for row in rows]


def _claimed(row):
    return ClaimedJob(**{name: getattr(row, name) for name in ClaimedJob._fields})


# -- looking for work --------------------------------------------------------------------------------------------------


def test_queues_are_found_by_one_descent_each(plans):
    """Two queues, a hundred thousand ready jobs, a handful of pages."""
    [plan] = plans(lambda store: store.ready_queues())

    assert_walks(plan, "dwq_job_ready", buffers=30)


def test_lanes_are_found_by_one_descent_each(plans):
    """A hundred lanes cost a hundred descents, however many jobs each has."""
    [plan] = plans(lambda store: store.lanes("default"))

    assert_walks(plan, "dwq_job_ready", buffers=600)


def test_walk_over_lanes_goes_on_where_it_ended(plans):
    """The second part does not step over the first one's jobs."""
    [plan] = plans(lambda store: store.lanes("default", after="t5", limit=5))

    assert_walks(plan, "dwq_job_ready", buffers=50)


def test_claim_finds_jobs_by_the_ready_index_and_takes_them_by_their_key(plans):
    """A batch from ten lanes touches some pages for each of its jobs, and nothing of the backlog."""
    tenants = [f"t{number}" for number in range(10)]

    [plan] = plans(lambda store: store.claim(order(*tenants, limit=100, quantum=10)))

    assert_walks(plan, "dwq_job_ready", KEY, buffers=5000)


def test_claim_of_one_job_costs_a_few_pages(plans):
    """A slow job is claimed alone, as cheaply as in a batch."""
    [plan] = plans(lambda store: store.claim(order("t7", limit=1, quantum=1)))

    assert_walks(plan, "dwq_job_ready", KEY, buffers=120)


def test_claim_after_a_mark_enters_the_index_there(plans):
    """What lies before the mark is not looked at."""
    mark = Job.objects.ready().filter(queue="default", tenant="t7", priority=0).order_by("-ready_at")[5].ready_at
    segments = (Segment(FIRST_RANK, None, -1), Segment(0, mark, LAST_RANK))

    [plan] = plans(lambda store: store.claim(order(lanes=[LaneTurn("t8"), LaneTurn("t7", segments)], limit=10)))

    assert_walks(plan, "dwq_job_ready", KEY, buffers=900)


def test_claim_over_empty_lanes_is_a_descent_each(plans):
    """A hundred lanes that were remembered and are empty by now."""
    [plan] = plans(lambda store: store.claim(order(*[f"gone{number}" for number in range(100)])))

    assert plan.indexes(JOB) == {"dwq_job_ready", KEY}
    assert plan.buffers <= 600


# -- settling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retention", [timedelta(), timedelta(days=1)], ids=["dropped", "kept"])
def test_completion_looks_at_its_own_jobs_alone(plans, retention):
    """A hundred jobs of one lease in one statement, found by their keys or by their lease."""
    done = [succeeded(job, retention=retention) for job in some_leased(100)]

    [plan] = plans(lambda store: store.complete(done[0].job.lease_id, done, worker="worker-1", last=False))

    assert plan.kinds.isdisjoint({"Seq Scan", "Sort", "Hash Join", "Merge Join"})
    assert plan.indexes(JOB) <= {KEY, "dwq_job_lease"}
    assert plan.discarded <= 100 * 100
    assert plan.buffers <= 4000


def test_failure_touches_its_own_job(plans):
    """No statement of a failed attempt looks at another row."""
    [job] = some_leased(1)

    for plan in plans(lambda store: fail(store, job, last=False)):
        assert plan.kinds.isdisjoint({"Seq Scan", "Sort"})
        assert plan.indexes(JOB) <= {KEY, "dwq_job_lease"}
        assert plan.buffers <= 150


def test_look_for_cancels_touches_what_a_worker_holds(plans):
    """Once a second while jobs run for long: by their leases."""
    jobs = some_leased(50)

    [plan] = plans(lambda store: store.cancel_requests({job.lease_id for job in jobs}))

    assert plan.indexes(JOB) == {"dwq_job_lease"}
    assert plan.buffers <= 250


def test_cancel_and_progress_touch_their_own_job(plans):
    """By its key."""
    [job] = some_leased(1)

    for do in (lambda store: store.note_progress(job.id, job.lease_id, "{}"), lambda store: store.cancel(job.id)):
        for plan in plans(do):
            assert plan.kinds.isdisjoint({"Seq Scan", "Sort"})
            assert plan.indexes(JOB) <= {KEY, "dwq_job_lease"}
            assert plan.buffers <= 150


def test_release_touches_its_own_jobs(plans):
    """Unstarted jobs go back by their keys."""
    jobs = some_leased(50)

    for plan in plans(lambda store: store.release(jobs[0].lease_id, [job.id for job in jobs], last=False)):
        assert plan.kinds.isdisjoint({"Seq Scan", "Sort"})
        assert plan.indexes(JOB) <= {KEY, "dwq_job_lease", "dwq_job_dedupe"}
        assert plan.buffers <= 2500


def test_search_for_lost_claims_finds_jobs_by_their_lease(plans):
    """Leases are few; jobs are found by them."""
    known = list(Lease.objects.values_list("pk", flat=True))[:-1]

    for plan in plans(lambda store: store.release_unknown("worker-1", known)):
        assert plan.indexes(JOB) <= {"dwq_job_lease", "dwq_job_dedupe"}
        assert plan.buffers <= 5000


def test_renewal_touches_the_leases_alone(plans):
    """One statement a beat, by the leases' keys."""
    leases = dict.fromkeys(Lease.objects.values_list("pk", flat=True)[:50], timedelta(seconds=30))

    [plan] = plans(lambda store: store.renew(leases))

    assert plan.kinds.isdisjoint({"Seq Scan", "Sort", "Hash Join"})
    assert plan.indexes(LEASE) == {LEASE_KEY}
    assert plan.buffers <= 500


# -- coming back -------------------------------------------------------------------------------------------------------


def test_reaper_finds_jobs_by_their_lease(plans):
    """The leases' table is small; the jobs' is not."""
    Lease.objects.filter(pk__in=Lease.objects.order_by("pk")[:2]).update(expires_at="2020-01-01T00:00Z")

    made = plans(lambda store: store.reap(put_back, limit=2))

    assert any(plan.indexes(JOB) == {"dwq_job_lease"} for plan in made)
    for plan in made:
        assert "Seq Scan" not in plan.kinds
        assert plan.indexes(JOB) <= {"dwq_job_lease", KEY}
        assert plan.buffers <= 3000


def test_promotion_takes_due_jobs_from_the_head_of_their_index(plans):
    """Sixty thousand scheduled jobs, a hundred of them due."""
    due = list(Job.objects.scheduled().order_by("ready_at").values_list("pk", flat=True)[:100])
    Job.objects.filter(pk__in=due).update(ready_at="2020-01-01T00:00Z")

    [plan] = plans(lambda store: store.promote())

    assert_walks(plan, "dwq_job_scheduled", KEY, buffers=4000)


def test_promotion_of_nothing_is_one_descent(plans):
    """Every worker asks every second."""
    [plan] = plans(lambda store: store.promote())

    assert plan.indexes(JOB) == {"dwq_job_scheduled", KEY}
    assert plan.buffers <= 10


def test_one_look_tells_of_all_that_maintenance_may_have_to_do(plans):
    """An idle worker asks it every few seconds: a descent for each sort of jobs, and the leases, which are few."""
    [plan] = plans(lambda store: store.outlook())

    assert_walks(plan, "dwq_job_scheduled", "dwq_job_blocked", "dwq_job_parked", buffers=300)
    assert plan.indexes(LEASE) == {LEASE_KEY}


def test_next_due_time_is_the_head_of_the_index(plans):
    """No minimum over all of them."""
    [plan] = plans(lambda store: store.next_due())

    assert_walks(plan, "dwq_job_scheduled", buffers=10)


# -- enqueueing and looking, on connections that nobody prepared -------------------------------------------------------


def test_holders_of_keys_are_found_by_the_unique_index(backlog, monkeypatch):
    """An enqueue in a view finds the job it clashes with by an index, whatever the planner believes."""
    keyed = Job.objects.filter(dedupe_key__isnull=False, queue="default")[3]
    twin = Job(id=new_id(), queue=keyed.queue, tenant=keyed.tenant, dedupe_key=keyed.dedupe_key, task="t")

    with explained(monkeypatch, JOB) as plans:
        [(_, duplicate)] = store_for().insert([twin])

    assert duplicate
    assert any("dwq_job_dedupe" in plan.indexes(JOB) for plan in plans)
    for plan in plans:
        assert "Seq Scan" not in plan.kinds
        assert plan.buffers <= 60


def test_statistics_read_a_bounded_number_of_rows(backlog, monkeypatch):
    """Counts stop at their cap, and the oldest age is found by descents (hexpm/hexpm PR#1773)."""
    with explained(monkeypatch, JOB) as plans:
        operate.stats()

    assert sum(plan.buffers for plan in plans) <= 60_000


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(),
        Wanted(queue="mail"),
        Wanted(queue="nothing"),
        Wanted(tenant="t7", state="ready"),
        Wanted(state="scheduled"),
        Wanted(state="leased"),
        Wanted(error="CardError"),
    ],
    ids=str,
)
def test_list_of_jobs_reads_a_window(backlog, monkeypatch, wanted):
    """Whoever looks at three in the morning must not add a scan of the backlog to what is wrong."""
    with explained(monkeypatch, JOB) as plans:
        listing.jobs(wanted, limit=50)

    for plan in plans:
        scanned = {node.get("Relation Name") for node in plan.nodes() if node["Node Type"] == "Seq Scan"}
        assert JOB not in scanned
        assert plan.buffers <= 450_000
        assert plan.discarded <= listing.WINDOW


def test_upcoming_schedules_are_the_head_of_their_index(store, monkeypatch):
    """A look every few seconds of every worker must not sort them all, however many somebody has made."""
    rows = [
        Schedule(name=f"schedule-{number}", task="t", next_at=store.now() + timedelta(minutes=number % 977))
        for number in range(3000)
    ]
    Schedule.objects.bulk_create(rows)
    run(f"ANALYZE {SCHEDULE}")

    with explained(monkeypatch, SCHEDULE) as told:
        store.upcoming_schedules()

    (plan,) = told
    assert plan.indexes(SCHEDULE) == {"dwq_schedule_next"}
    assert "Sort" not in plan.kinds
    assert plan.buffers < 150
