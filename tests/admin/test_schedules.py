"""The screen of schedules."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from django_workqueue.domain.context import SCHEDULE
from django_workqueue.lifecycle.schedule import review
from django_workqueue.models import Firing, Job, Schedule
from tests.admin.conftest import VIEWS
from tests.admin.pages import page, told
from tests.factories import DeadLetterFactory, FinishedJobFactory, JobFactory, ScheduleFactory, ago

pytestmark = pytest.mark.django_db

ALL = ("add_schedule", "change_schedule", "delete_schedule", "switch_schedule", "run_schedule")
NEW = {
    "name": "nightly",
    "task": "tests.samples.add",
    "args": "[1, 2]",
    "kwargs": "{}",
    "cron": "0 3 * * *",
    "interval": "",
    "zone": "Europe/Berlin",
    "starts_at_0": "",
    "starts_at_1": "",
    "ends_at_0": "",
    "ends_at_1": "",
    "enabled": "on",
    "catch_up": "latest",
    "overlap": "skip",
    "queue": "mail",
    "tenant": "",
    "priority": "5",
}


@pytest.fixture
def planner(browser):
    """Return the browser of someone who may do everything to schedules."""
    return browser(*VIEWS, *ALL)


def run(client, action, *rows):
    """Run an action of the list on ``rows``."""
    return client.post(page("schedule"), {"action": action, "_selected_action": [row.pk for row in rows], "index": 0})


def add(client, **changed):
    """Send the form of a new schedule."""
    return client.post(page("schedule", name="add"), NEW | changed)


def errors(response):
    """Return the errors of a form, by field."""
    return {name: list(texts) for name, texts in response.context["adminform"].form.errors.items()}


def text(response):
    """Return a page's source on one line, with plain spaces."""
    return " ".join(response.content.decode().replace("\xa0", " ").split())


# -- the form ----------------------------------------------------------------------------------------------------------


def test_schedule_is_made_and_planned(planner):
    """It fires next when its line says, and the log says who made it."""
    assert add(planner).status_code == 302

    made = Schedule.objects.get()
    assert (made.queue, made.priority, made.origin) == ("mail", 5, "admin")
    assert made.next_at == made.timing.next_after(timezone.now())
    assert LogEntry.objects.get().object_id == str(made.pk)


def test_interval_and_bounds_can_be_given(planner):
    """In the form's own way of writing them."""
    bounds = {
        "starts_at_0": "2040-01-01",
        "starts_at_1": "08:00:00",
        "ends_at_0": "2041-01-01",
        "ends_at_1": "08:00:00",
    }

    assert add(planner, cron="", interval="01:30:00", zone="", **bounds).status_code == 302

    made = Schedule.objects.get()
    assert (made.interval, made.zone) == (timedelta(hours=1, minutes=30), "UTC")
    assert made.next_at == made.starts_at


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"cron": "61 3 * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": ""}, "cron"),
        ({"interval": "01:00:00"}, "cron"),
        ({"cron": "", "interval": "00:00:00"}, "interval"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"args": "[1,"}, "args"),
        ({"args": "{}"}, "args"),
        ({"args": "[NaN, 2]"}, "args"),
        ({"kwargs": "[]"}, "kwargs"),
        ({"args": "[1]"}, "__all__"),
        ({"task": "tests.samples.nothing"}, "task"),
        ({"queue": ""}, "queue"),
        ({"tenant": "x\ty"}, "tenant"),
        ({"priority": "101"}, "priority"),
        ({"catch_up": "all"}, "catch_up"),
        ({"name": ""}, "name"),
    ],
)
def test_what_cannot_be_followed_is_refused_at_its_field(planner, changed, field):
    """And nothing is stored (certimate#906)."""
    response = add(planner, **changed)

    assert list(errors(response)) == [field]
    assert not Schedule.objects.exists()


def test_name_is_given_once(planner):
    """In the form, and not as an error of the database."""
    ScheduleFactory(name="nightly")

    assert list(errors(add(planner))) == ["name"]


def test_edited_line_holds_at_once(planner, store):
    """The next firing is the new one's."""
    add(planner)
    row = Schedule.objects.get()

    response = planner.post(page("schedule", row.pk), NEW | {"cron": "0 4 * * *"})

    assert response.status_code == 302
    after = Schedule.objects.get()
    assert after.next_at == after.timing.next_after(timezone.now())
    assert after.next_at != row.next_at


def test_schedule_of_the_code_is_not_edited_here(planner):
    """The next start would change it back; it is shown all the same."""
    row = ScheduleFactory(origin="code")

    assert planner.post(page("schedule", row.pk), NEW).status_code == 403
    assert planner.post(page("schedule", row.pk, name="delete"), {"post": "yes"}).status_code == 403

    content = planner.get(page("schedule", row.pk)).content.decode()
    assert "_save" not in content
    assert row.name in content


def test_deleting_leaves_a_log(planner):
    """Also by the action of the list, which leaves out what is in the code."""
    mine, other, code = ScheduleFactory(), ScheduleFactory(), ScheduleFactory(origin="code")

    planner.post(page("schedule", mine.pk, name="delete"), {"post": "yes"})
    run_delete = {"action": "delete_selected", "_selected_action": [other.pk], "post": "yes", "index": 0}
    planner.post(page("schedule"), run_delete)
    planner.post(page("schedule"), run_delete | {"_selected_action": [code.pk]})

    assert list(Schedule.objects.all()) == [code]
    assert LogEntry.objects.count() == 2


# -- what is done to them ----------------------------------------------------------------------------------------------


def test_schedules_are_switched_and_run_once(planner, store):
    """Each act is logged, and told in a sentence."""
    row = ScheduleFactory(name="nightly")

    off = run(planner, "switch_off", row)
    assert (told(off), Schedule.objects.get().enabled) == (["1 schedule was switched off."], False)
    once = run(planner, "run_once", row)
    assert told(once)[-1] == "1 job was enqueued."
    assert Job.objects.get().decoded_metadata[SCHEDULE] == "nightly"
    on = run(planner, "switch_on", row)
    assert (told(on)[-1], Schedule.objects.get().enabled) == ("1 schedule was switched on.", True)

    messages = LogEntry.objects.order_by("id").values_list("change_message", flat=True)
    assert list(messages) == ["Switched off.", "Run once.", "Switched on."]


def test_second_click_runs_nothing(planner):
    """The job of the first one is still live."""
    row = ScheduleFactory()
    run(planner, "run_once", row)

    assert told(run(planner, "run_once", row))[-1] == "0 jobs were enqueued."
    assert Job.objects.count() == 1


def test_what_cannot_be_followed_is_not_switched_on(planner):
    """The others are, and the sentence says why it was not."""
    bad, good = ScheduleFactory(enabled=False, cron="61 * * * *"), ScheduleFactory(enabled=False)

    sentences = told(run(planner, "switch_on", bad, good))

    assert "61 * * * *" in sentences[0]
    assert sentences[1] == "1 schedule was switched on."
    assert set(Schedule.objects.filter(enabled=True)) == {good}


@pytest.mark.parametrize("action", ["run_once", "switch_off", "switch_on", "delete_selected"])
def test_each_act_needs_its_permission(browser, action):
    """Who may edit may not run, and who may look may do nothing."""
    verbs = {"run_once": "run_schedule", "delete_selected": "delete_schedule"}
    others = set(ALL) - {verbs.get(action, "switch_schedule")}
    row = ScheduleFactory(enabled=action != "switch_on")
    before = list(Schedule.objects.values())

    run(browser(*VIEWS, *others), action, row)

    assert list(Schedule.objects.values()) == before
    assert not Job.objects.exists()


def test_acts_need_a_token(browser):
    """A page elsewhere must not run jobs through the browser of someone logged in."""
    row = ScheduleFactory()

    assert run(browser(*VIEWS, *ALL, csrf=True), "run_once", row).status_code == 403
    assert not Job.objects.exists()


# -- what is shown -----------------------------------------------------------------------------------------------------


def test_list_says_when_each_fires_and_why_not(viewer, store):
    """In words; a fault, an end and a switch are told apart."""
    ScheduleFactory(cron="0 3 * * *", zone="Europe/Berlin")
    ScheduleFactory(cron="61 * * * *")
    ScheduleFactory(enabled=False, off_reason="removed")
    ScheduleFactory(ends_at=timezone.now() - timedelta(days=1))
    review(store)

    shown = text(viewer.get(page("schedule")))

    assert ">At 03:00 every day (Europe/Berlin)<" in shown
    assert ">61 * * * *<" in shown
    for state in ("On", "Passed over: at fault", "No longer in the code", "Over"):
        assert f">{state}<" in shown


def test_page_shows_the_next_five_firings(viewer, store):
    """In local time, for whoever wants to see whether the line means what it should."""
    row = ScheduleFactory(cron="0 3 * * *", zone="Europe/Berlin")
    review(store)

    assert text(viewer.get(page("schedule", row.pk))).count(" 03:00:00 CE") == 5


def test_page_shows_the_fault(viewer, store):
    """As text, whatever stands in it."""
    row = ScheduleFactory(cron="<b> * * * *")
    review(store)

    shown = viewer.get(page("schedule", row.pk)).content.decode()

    assert "cannot be followed" in shown
    assert "<b> *" not in shown


# -- what became of it -------------------------------------------------------------------------------------------------


def fire(row, job, *, late=None, **given):
    """Add a firing to the history of a schedule, by hand unless it says how late it was."""
    fired = timezone.now() - timedelta(minutes=5)
    due = None if late is None else fired - late
    Firing.objects.create(schedule=row, job_id=job.pk, fired_at=fired, due_at=due, **given)


def test_page_tells_what_became_of_each_firing(viewer):
    """How late it was, and where its job is by now, with the way there; newest first."""
    row = ScheduleFactory()
    jobs = [FinishedJobFactory(), DeadLetterFactory(), JobFactory()]
    for job in jobs:
        fire(row, job, late=timedelta(minutes=2))
    fire(row, jobs[2], skipped=True)
    gone = FinishedJobFactory()
    fire(row, gone)
    gone.delete()

    response = viewer.get(page("schedule", row.pk))

    states = [re.sub(r"<[^>]*>", "", each.state) for each in response.context["firings"]]
    assert states == [
        "No longer kept",
        "Skipped: the job of an earlier firing was live",
        "Ready",
        "Dead: Attempts used up",
        "Succeeded",
    ]
    assert [each.late for each in response.context["firings"]][2:] == ["2 min 0 s"] * 3
    assert page("job", jobs[0].pk) in response.content.decode()


def test_list_tells_how_the_last_firing_went(viewer):
    """Late, and its job is dead: a schedule that fires and never succeeds is seen."""
    row = ScheduleFactory(last_at=ago(minutes=5))
    fire(row, FinishedJobFactory(), late=timedelta(minutes=4))
    fire(row, DeadLetterFactory(), late=timedelta(minutes=2))
    ScheduleFactory()

    shown = re.sub(r"<[^>]*>", "", text(viewer.get(page("schedule"))))

    assert "Dead: Attempts used up 2 min 0 s late" in shown
    assert "Succeeded" not in shown


def test_jobs_of_firings_are_shown_to_those_who_may_view_jobs(browser):
    """The permission to see schedules does not open jobs."""
    row, job = ScheduleFactory(), JobFactory()
    fire(row, job)

    content = browser("view_schedule").get(page("schedule", row.pk)).content.decode()

    assert str(job.pk) in content
    assert page("job", job.pk) not in content


def test_page_runs_and_switches_for_those_who_may(planner, store):
    """It asks first, and the log tells."""
    row = ScheduleFactory(name="nightly")
    names = ("run_once", "switch_off", "switch_on")
    run_page, off_page, on_page = (page("schedule", row.pk, name=name) for name in names)

    content = planner.get(page("schedule", row.pk)).content.decode()
    assert run_page in content
    assert off_page in content
    assert on_page not in content
    planner.post(run_page)
    planner.post(off_page)

    assert Job.objects.count() == 1
    assert not Schedule.objects.get().enabled
    told_twice = planner.post(run_page, follow=True)
    assert "is still live" in told_twice.content.decode()
    messages = LogEntry.objects.order_by("id").values_list("change_message", flat=True)
    assert list(messages) == ["Run once.", "Switched off."]


@pytest.mark.parametrize("name", ["run_once", "switch_off"])
def test_page_of_an_act_needs_its_permission(browser, name):
    """Who may edit may not run."""
    row = ScheduleFactory()
    others = set(ALL) - {"run_schedule" if name == "run_once" else "switch_schedule"}
    client = browser(*VIEWS, *others)

    assert client.post(page("schedule", row.pk, name=name)).status_code == 403
    assert not Job.objects.exists()
    assert Schedule.objects.get().enabled
