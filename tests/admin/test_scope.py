"""Who may see some tenants only: what is there for them, what they may do, and what is refused."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from django_workqueue.admin.changelist import BoundedChangeList
from django_workqueue.models import DeadLetter, FinishedJob, Job, Pause, Schedule, Worker
from django_workqueue.testing import drain
from tests import scoping
from tests.admin.pages import SCREENS, listed, page, told
from tests.factories import (
    DeadLetterFactory,
    FailureFactory,
    FinishedJobFactory,
    JobFactory,
    LeaseFactory,
    PauseFactory,
    QueueFactory,
    ScheduleFactory,
    StepFactory,
    WorkerFactory,
    WorkflowFactory,
)

pytestmark = pytest.mark.django_db

WITH_TENANT = {"deadletter", "finishedjob", "job", "schedule", "workflow"}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr("django_workqueue.admin.bulk.PAUSE", 0)


def decision():
    """Return the job of a large decision."""
    return Job.objects.get(task="django_workqueue.admin.bulk.decide")


# -- looking ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", sorted(WITH_TENANT))
def test_list_shows_the_rows_of_the_users_tenants(vera, model):
    """The jobs of others, and those that are nobody's, do not exist for them."""
    mine, _other, _nobodys = (SCREENS[model](tenant=name) for name in ("acme", "rival", ""))

    assert listed(vera.get(page(model))) == [mine.pk]


@pytest.mark.parametrize("model", sorted(WITH_TENANT))
def test_page_of_anothers_row_is_not_found(vera, model):
    """An id that was guessed, or seen in a log, opens nothing, and is answered like one that never was."""
    other = SCREENS[model](tenant="rival")

    for name in (None, "history"):
        response = vera.get(page(model, other.pk, name=name), follow=True)
        assert response.redirect_chain == [("/admin/", 302)]
        assert "exist" in told(response)[0]


@pytest.mark.parametrize("model", sorted(WITH_TENANT))
def test_none_stands_for_all_tenants(vera, model):
    """The people who run the site see everything."""
    scoping.grants["vera"] = None
    rows = [SCREENS[model](tenant=name) for name in ("acme", "rival", "")]

    assert set(listed(vera.get(page(model)))) == {row.pk for row in rows}


def test_empty_name_is_that_of_jobs_without_a_tenant(vera):
    """Who looks after the site's own jobs may see these, and no tenant's."""
    scoping.grants["vera"] = [""]
    nobodys = JobFactory()
    JobFactory(tenant="acme")

    assert listed(vera.get(page("job"))) == [nobodys.pk]


def test_moved_job_is_followed_within_the_tenants_alone(vera):
    """The redirect would tell that a job of this id is there, and where."""
    mine, other = FinishedJobFactory(tenant="acme"), FinishedJobFactory(tenant="rival")

    assert vera.get(page("job", mine.pk)).url == page("finishedjob", mine.pk)
    assert vera.get(page("job", other.pk)).url == "/admin/"


def test_own_job_is_shown_with_its_steps_and_failures(vera):
    """The scope takes nothing from what is theirs."""
    letter = DeadLetterFactory(tenant="acme")
    FailureFactory(job_id=letter.pk, message="the printer is on fire")
    StepFactory(job_id=letter.pk, tenant="acme", name="charge-card")
    StepFactory(job_id=letter.pk, tenant="rival", name="anothers")

    shown = vera.get(page("deadletter", letter.pk)).content.decode()

    assert "the printer is on fire" in shown
    assert "charge-card" in shown
    assert "anothers" not in shown


def test_list_looks_through_a_window_of_the_whole_table(vera, monkeypatch):
    """No index begins with the tenant: one whose last job is old would have the whole table looked through."""
    monkeypatch.setattr(BoundedChangeList, "window", 3)
    mine = JobFactory(tenant="acme")
    JobFactory.create_batch(3, tenant="rival")

    first = vera.get(page("job"))
    behind = vera.get(page("job") + first.context["cl"].further)

    assert listed(first) == []
    assert listed(behind) == [mine.pk]


def test_workflow_with_a_job_of_another_tenant_is_hidden(vera):
    """Its tree, its problem and its result tell of all its members."""
    mine = WorkflowFactory(tenant="acme")
    mixed = WorkflowFactory(tenant="acme", is_mixed=True)

    assert listed(vera.get(page("workflow"))) == [mine.pk]
    assert vera.get(page("workflow", mixed.pk)).status_code == 302


def test_worker_and_lease_show_the_jobs_of_the_users_tenants(vera):
    """A lease may cover jobs of several."""
    lease = LeaseFactory(worker=WorkerFactory().pk)
    mine = JobFactory(leased=True, lease=lease, tenant="acme", task="shop.tasks.mine")
    JobFactory(leased=True, lease=lease, tenant="rival", task="shop.tasks.theirs")
    others = JobFactory(leased=True, tenant="rival").lease

    for address in (page("worker", lease.worker), page("lease", lease.pk)):
        shown = vera.get(address).content.decode()
        assert mine.task in shown
        assert "shop.tasks.theirs" not in shown
    assert listed(vera.get(page("lease"))) == [lease.pk]
    assert vera.get(page("lease", others.pk)).status_code == 302


def test_columns_that_add_up_all_tenants_are_left_out(vera):
    """How much others do is theirs to tell."""
    queue = QueueFactory(name="default", done=7654321)
    worker = WorkerFactory(done=7654321)

    for address in (page("queue"), page("queue", queue.pk), page("worker"), page("worker", worker.pk)):
        shown = vera.get(address).content.decode()
        assert "7654321" not in shown
        assert "7,654,321" not in shown
    scoping.grants["vera"] = None
    assert "7654321" in vera.get(page("queue", queue.pk)).content.decode()


@pytest.mark.parametrize("name", ["overview", "statistics"])
def test_numbers_of_all_tenants_are_refused_with_a_page_that_says_why(vera, name):
    """The rollups know no tenants. The page leads to the lists that do."""
    response = vera.get(page("queue", name=name))

    assert response.status_code == 403
    assert "adds up the jobs of all tenants" in " ".join(response.content.decode().split())
    for screen in ("job", "finishedjob", "deadletter"):
        assert f'href="{page(screen)}"' in response.content.decode()


def test_names_of_queues_are_offered_to_who_may_see_queues(vera, browser):
    """They belong to nobody, and may still tell who the others are."""
    QueueFactory(name="rival-mail")
    assert b"rival-mail" in vera.get(page("job")).content

    User.objects.get(username="vera").user_permissions.remove(
        *User.objects.get(username="vera").user_permissions.filter(codename="view_queue")
    )
    assert b"rival-mail" not in vera.get(page("job")).content


def test_groups_are_those_of_the_users_letters(vera):
    """A group is known by task and error, which tenants have in common: size, sample and times are their own."""
    now = timezone.now()
    died = {"task": "shop.tasks.mail", "fingerprint": "f1"}
    first = DeadLetterFactory(tenant="acme", last_error="E: a1", died_at=now - timedelta(hours=3), **died)
    newest = DeadLetterFactory(tenant="acme", last_error="E: a2", died_at=now - timedelta(hours=2), **died)
    DeadLetterFactory(tenant="rival", last_error="E: theirs", died_at=now - timedelta(hours=1), **died)
    DeadLetterFactory(tenant="rival", last_error="E: other", fingerprint="f2")

    response = vera.get(page("deadletter", name="groups"))

    [row] = response.context["rows"]
    assert (row.size, row.sample) == (2, newest.last_error)
    assert first.last_error != newest.last_error
    assert listed(vera.get(row.address)) == [newest.pk, first.pk]
    assert listed(vera.get(page("deadletter", query="?fingerprint=f2"))) == []


# -- doing ------------------------------------------------------------------------------------------------------------


def test_large_decision_keeps_to_the_scope_that_it_was_made_in(vera):
    """What its maker may see by the time it runs is more: it was not what they decided about."""
    DeadLetterFactory.create_batch(101, tenant="acme")
    theirs = DeadLetterFactory.create_batch(5, tenant="rival")
    vera.post(page("deadletter", name="all_discard"), {"reason": "old"})
    scoping.grants["vera"] = ["acme", "rival"]

    drain("default", max_jobs=1)

    assert set(DeadLetter.objects.all()) == set(theirs)
    assert json.loads(FinishedJob.objects.get().result)["done"] == 101


@pytest.mark.parametrize("left", [(), ["rival"]])
def test_large_decision_keeps_to_the_scope_of_the_moment_too(vera, left):
    """Who has lost a tenant since may not touch its jobs any more."""
    DeadLetterFactory.create_batch(101, tenant="acme")
    DeadLetterFactory(tenant="rival")
    vera.post(page("deadletter", name="all_discard"), {"reason": "old"})
    scoping.grants["vera"] = left

    drain("default", max_jobs=1)

    assert DeadLetter.objects.count() == 102


def test_large_decision_waits_while_the_scope_cannot_be_told(vera):
    """It must not count as done with nothing touched: it is tried again."""
    DeadLetterFactory.create_batch(101, tenant="acme")
    vera.post(page("deadletter", name="all_discard"), {"reason": "old"})
    scoping.grants["vera"] = OSError("no directory")

    drain("default", max_jobs=1, raise_errors=False)

    assert DeadLetter.objects.count() == 101
    assert "no directory" in decision().last_error


def test_large_decision_about_one_tenant_can_be_watched(vera):
    """The job belongs to the tenant, so its page is there for its maker; one about several is nobody's."""
    DeadLetterFactory.create_batch(101, tenant="acme")

    response = vera.post(page("deadletter", name="all_requeue"), {})
    assert response.url == page("job", decision().pk)
    assert vera.get(response.url).status_code == 200

    scoping.grants["vera"] = ["acme", "globex"]
    Job.objects.all().delete()
    response = vera.post(page("deadletter", name="all_requeue"), {})
    assert response.url.startswith(page("deadletter"))
    assert decision().tenant == ""


@pytest.mark.parametrize("change", [{"user": "77777"}, {"options": {"by": "x", "tenants": None}}, {"query": "q=a"}])
def test_decision_with_other_arguments_than_the_admin_gave_is_rejected(vera, change):
    """Who may change the arguments of a job, or schedule one, would act in another person's name and scope."""
    DeadLetterFactory.create_batch(101, tenant="acme")
    vera.post(page("deadletter", name="all_discard"), {"reason": "old"})
    job = decision()
    Job.objects.update(kwargs=json.dumps(json.loads(job.kwargs) | change))

    drain("default", max_jobs=1, raise_errors=False)

    assert "not signed" in DeadLetter.objects.get(reason="rejected").last_error
    assert DeadLetter.objects.count() == 102


def test_decision_of_another_job_is_no_signature(vera):
    """Arguments that somebody has seen, in a job of their own, decide nothing."""
    DeadLetterFactory.create_batch(101, tenant="acme")
    vera.post(page("deadletter", name="all_discard"), {"reason": "old"})
    job = decision()
    JobFactory(task=job.task, args=job.args, kwargs=job.kwargs, queue="copy")

    drain("copy", max_jobs=1, raise_errors=False)

    assert "not signed" in DeadLetter.objects.get(reason="rejected").last_error


def test_tenant_is_paused_and_resumed_by_who_may_see_it(vera):
    """A kill switch for their own jobs, and for nobody else's."""
    vera.post(page("pause", name="add"), {"kind": "tenant", "name": "acme"})
    [pause] = Pause.objects.all()

    data = {"action": "resume", "_selected_action": [pause.pk], "index": 0}
    assert "1 pause was ended." in told(vera.post(page("pause"), data))


@pytest.mark.parametrize(("kind", "name"), [("tenant", "rival"), ("queue", "default"), ("task", "shop.tasks.mail")])
def test_pause_that_touches_others_is_refused(vera, kind, name):
    """A queue and a task are every tenant's."""
    assert vera.post(page("pause", name="add"), {"kind": kind, "name": name}).status_code == 200
    assert not Pause.objects.exists()


def test_pauses_of_queues_and_tasks_are_seen_and_stay(vera):
    """They say why a job does not start; ending one would start the jobs of others."""
    pauses = [PauseFactory(kind="queue", name="mail"), PauseFactory(kind="task", name="shop.tasks.mail")]
    data = {"action": "resume", "_selected_action": [pause.pk for pause in pauses], "index": 0}

    assert set(listed(vera.get(page("pause")))) == {pause.pk for pause in pauses}
    assert told(vera.post(page("pause"), data)) == ["0 pauses were ended."]
    assert Pause.objects.count() == 2


def test_queue_is_not_paused_by_who_may_see_some_tenants(vera):
    """Not even with the permission: the jobs of all tenants would stop."""
    QueueFactory(name="default")

    vera.post(page("queue"), {"action": "pause", "_selected_action": ["default"], "index": 0})

    assert not Pause.objects.exists()


def test_workers_are_not_asked_for_anything_by_who_may_see_some_tenants(vera):
    """They run the jobs of all."""
    worker = WorkerFactory()

    for name in ("quiet", "stop", "forget"):
        assert vera.post(page("worker", worker.pk, name=name), {"reason": "x"}).status_code == 403
        vera.post(page("worker"), {"action": name, "_selected_action": [worker.pk], "index": 0, "confirmed": "yes"})
    assert Worker.objects.get().requested_at is None


def schedule(**columns):
    """Return what the form of a new schedule is filled in with."""
    given = {"name": "nightly", "task": "tests.samples.add", "args": "[1, 2]", "kwargs": "{}", "cron": "0 3 * * *"}
    rest = {"queue": "default", "priority": 0, "catch_up": "latest", "overlap": "allow", "enabled": "on", "zone": "UTC"}
    return given | rest | columns


@pytest.mark.parametrize(("tenant", "is_made"), [("acme", True), ("rival", False), ("", False)])
def test_schedule_is_made_for_the_users_tenants_alone(vera, tenant, is_made):
    """Its jobs would be another's, or nobody's."""
    response = vera.post(page("schedule", name="add"), schedule(tenant=tenant))

    assert Schedule.objects.exists() is is_made, response.context and response.context["errors"]


def test_schedule_cannot_be_given_away(vera):
    """Nor made another's by an edit."""
    row = ScheduleFactory(tenant="acme", name="nightly")

    vera.post(page("schedule", row.pk), schedule(tenant="rival"))

    assert Schedule.objects.get().tenant == "acme"


# -- where the function fails -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("granted", ["acme", OSError("no directory")], ids=["text", "error"])
@pytest.mark.parametrize("model", sorted(SCREENS))
def test_nothing_is_shown_where_the_scope_cannot_be_told(vera, model, granted, caplog):
    """A text would be taken for its letters, an error for permission: never everything, and the reason is logged."""
    scoping.grants["vera"] = granted
    row = SCREENS[model](**({"tenant": "acme"} if model in WITH_TENANT else {}))

    response = vera.get(page(model))

    assert listed(response) == []
    assert told(response)[0].startswith("No rows are shown: it cannot be told which tenants you may see.")
    assert vera.get(page(model, row.pk)).status_code == 302
    assert "WORKQUEUE['TENANT_SCOPE'], tests.scoping.tenants_of, does not say" in caplog.text


def test_function_is_asked_once_for_each_page(vera, monkeypatch):
    """It may read the database."""
    asked = []
    monkeypatch.setattr(scoping, "tenants_of", lambda user: asked.append(user) or ["acme"])
    JobFactory(tenant="acme")

    vera.get(page("job"))

    assert len(asked) == 1
