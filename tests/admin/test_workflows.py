"""The screen of workflows."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_workqueue import chain, group
from django_workqueue.admin import workflows
from django_workqueue.models import Workflow
from django_workqueue.testing import drain
from tests.admin.conftest import VIEWS
from tests.admin.pages import listed, page, statements, told
from tests.factories import WorkflowFactory
from tests.workflows import sample_tasks as tasks

pytestmark = pytest.mark.django_db


@pytest.fixture
def warden(browser):
    """Return the browser of someone who may cancel workflows."""
    return browser(*VIEWS, "cancel_workflow")


def cancel(client, *rows, **more):
    """Run the action of the list on workflows."""
    data = {"action": "cancel", "_selected_action": [str(row.id) for row in rows], "index": 0, **more}
    return client.post(page("workflow"), data)


def text(response):
    """Return a page's source on one line."""
    return " ".join(response.content.decode().split())


def test_workflow_is_shown_as_a_tree_with_states(viewer):
    """A person sees what is done, what died, and what is held back by that."""
    graph = chain(
        group(tasks.say.signature(), chain(tasks.fail.signature(), tasks.say.signature())), tasks.say.signature()
    )
    handle = graph.enqueue()
    drain(raise_errors=False)

    shown = text(viewer.get(page("workflow", handle.id)))

    states = [part.partition("<")[0] for part in shown.split("<strong>")[1:]]
    assert states[-7:] == ["Active", "Active", "Done", "Active", "Dead", "Held back", "Held back"]
    handle.refresh()
    assert "ValueError: no paper" in shown
    assert page("job", handle.culprit) in shown
    assert ">1 of 4<" in shown


def test_member_leads_to_where_its_job_is(viewer):
    """One click from the tree to the dead letter."""
    handle = chain(tasks.fail.signature()).enqueue()
    drain(raise_errors=False)

    response = viewer.get(page("job", handle.members[0].id), follow=True)

    assert response.redirect_chain[-1][0] == page("deadletter", handle.members[0].id)


def test_job_leads_to_its_workflow(viewer):
    """And a job that stands alone says nothing of one."""
    handle = chain(tasks.say.signature()).enqueue()
    alone = tasks.say.enqueue()

    assert page("workflow", handle.id) in text(viewer.get(page("job", handle.members[0].id)))
    assert "/workflow/0" not in text(viewer.get(page("job", alone.id)))


def test_large_workflow_has_a_bounded_page(viewer, monkeypatch):
    """However many members: some of them by one statement."""
    monkeypatch.setattr(workflows, "SHOWN", 10)
    handle = group(tasks.say.signature() for _ in range(30)).enqueue()

    with CaptureQueriesContext(connection) as captured:
        shown = text(viewer.get(page("workflow", handle.id)))

    assert len(statements(captured)) <= 8
    assert shown.count("sample_tasks.say</a>") == 9
    assert "The other members are left out." in shown


def test_workflows_are_listed_by_state(viewer):
    """What failed is found among what runs."""
    WorkflowFactory()
    failed = WorkflowFactory(failed=True)

    assert listed(viewer.get(page("workflow", query="?state=failed"))) == [failed.pk]


def test_workflow_is_cancelled_after_a_question(warden):
    """Nothing happens before the answer; then it does, and the log says who did it."""
    handle = chain(tasks.say.signature(), tasks.say.signature()).enqueue()

    asked = cancel(warden, handle)
    assert "This cannot be undone." in text(asked)
    assert Workflow.objects.get().state == "running"

    done = cancel(warden, handle, confirmed="yes")
    assert Workflow.objects.get().state == "cancelled"
    assert told(done) == ["1 workflow was cancelled."]
    assert list(LogEntry.objects.values_list("object_id", "change_message")) == [(handle.id, "Cancelled.")]


def test_cancelling_needs_its_permission(viewer):
    """Who may look may not end the work of others."""
    handle = chain(tasks.say.signature()).enqueue()

    cancel(viewer, handle, confirmed="yes")

    assert Workflow.objects.get().state == "running"


def test_cancelling_needs_a_token(browser):
    """A page elsewhere must not be able to cancel through the browser of someone logged in."""
    handle = chain(tasks.say.signature()).enqueue()

    response = cancel(browser(*VIEWS, "cancel_workflow", csrf=True), handle, confirmed="yes")

    assert response.status_code == 403
    assert Workflow.objects.get().state == "running"
