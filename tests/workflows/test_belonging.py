"""Whose a workflow is, and whether all of it is."""

from __future__ import annotations

import pytest

from django_workqueue import chain, group
from django_workqueue.models import Workflow
from tests import hooking

from . import sample_tasks as tasks

pytestmark = pytest.mark.django_db

SAY = tasks.say.signature("a")
ELSEWHERE = SAY.using(tenant="globex")


@pytest.mark.parametrize(
    ("graph", "tenant", "is_mixed"),
    [
        (chain(SAY, SAY), "", False),
        (chain(SAY, SAY).using(tenant="acme"), "acme", False),
        (chain(ELSEWHERE, ELSEWHERE), "globex", False),
        (group(SAY, ELSEWHERE).using(tenant="acme"), "acme", True),
        (chain(SAY, group(SAY, ELSEWHERE)).using(tenant="acme"), "acme", True),
        (group(SAY).using(tenant="acme", on_error=ELSEWHERE), "acme", True),
        (group(SAY).using(tenant="acme", on_error=SAY), "acme", False),
    ],
)
def test_workflow_knows_whether_all_its_jobs_are_of_its_tenant(graph, tenant, is_mixed):
    """Those who may see one tenant are shown the whole of it, or nothing; it is decided once, at the enqueue."""
    graph.enqueue()

    row = Workflow.objects.get()
    assert (row.tenant, row.is_mixed) == (tenant, is_mixed)


def test_workflow_is_the_tenants_to_whom_a_hook_gives_its_jobs(settings):
    """The caller named none, as the middleware knows whose request it is."""
    settings.WORKQUEUE = {"ENQUEUE_HOOKS": ["tests.hooking.set_tenant"]}
    token = hooking.current_tenant.set("acme")
    try:
        chain(SAY, SAY).enqueue()
    finally:
        hooking.current_tenant.reset(token)

    row = Workflow.objects.get()
    assert (row.tenant, row.is_mixed) == ("acme", False)
