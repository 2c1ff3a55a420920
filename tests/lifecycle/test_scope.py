"""Whose jobs a user may see, and that what is not theirs is not found by the operations."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from django_workqueue import JobNotFoundError, StepNotFoundError, TenantScopeError, WorkflowNotFoundError
from django_workqueue.domain.scope import Scope
from django_workqueue.lifecycle import listing, operate
from django_workqueue.lifecycle import workflow as flowing
from django_workqueue.lifecycle.dead_groups import dead_groups
from django_workqueue.lifecycle.scope import MOST_TENANTS, scope_of
from django_workqueue.models import DeadLetter, Job
from tests import scoping
from tests.factories import DeadLetterFactory, JobFactory, StepFactory, WorkflowFactory

pytestmark = pytest.mark.django_db

MINE = [("acme",), ["acme", "globex"], {"acme"}, "acme"]


@pytest.fixture
def granted(settings):
    """Return a function that says what the project's function returns for vera."""
    settings.WORKQUEUE = scoping.SETTING

    def grant(value):
        scoping.grants["vera"] = value
        return scope_of(User(username="vera"))

    yield grant
    scoping.grants.clear()


def test_without_the_setting_everybody_sees_all():
    """The permissions decide alone, and no function is asked."""
    assert scope_of(User(username="vera")) == Scope()


@pytest.mark.parametrize("value", [["acme"], ("acme",), {"acme"}, frozenset({"acme"}), iter(["acme"])])
def test_any_collection_of_names_will_do(granted, value):
    """A list, a set, or the values of a queryset."""
    assert granted(value) == Scope.of("acme")


def test_names_may_come_from_the_database(granted):
    """As they will: the tenants of a person are rows."""
    User.objects.create_user("acme")
    assert granted(User.objects.values_list("username", flat=True)) == Scope.of("acme")


@pytest.mark.parametrize("value", ["acme", 7, {"acme": 1}, [7], ["a" * 101], ["\x00"], ValueError("broken")])
def test_what_names_no_tenants_is_an_error_that_says_so(granted, value):
    """With the path of the function, what it did, and the remedy."""
    with pytest.raises(TenantScopeError, match=r"tests\.scoping\.tenants_of, does not say .* returns a collection"):
        granted(value)


def test_tenants_are_at_most_a_thousand(granted):
    """Their names travel in each statement."""
    assert len(granted(map(str, range(MOST_TENANTS))).tenants) == MOST_TENANTS
    with pytest.raises(TenantScopeError, match="it returned 1001 tenants"):
        granted(map(str, range(MOST_TENANTS + 1)))


def test_scopes_of_two_moments_have_their_tenants_in_common():
    """A decision keeps to what its maker could see then, and can see now."""
    one, two = Scope.of(["a", "b"]), Scope.of(["b", "c"])

    assert one & two == Scope.of("b")
    assert one & Scope() == Scope() & one == one
    assert Scope() & Scope() == Scope()


@pytest.mark.parametrize("tenant", MINE)
def test_operations_find_the_jobs_of_their_tenants_alone(tenant):
    """One tenant or several; what is another's is answered like what never was."""
    mine, other = JobFactory(tenant="acme"), JobFactory(tenant="rival")
    letters = [DeadLetterFactory(tenant=name) for name in ("acme", "acme", "rival")]
    ids = [letter.pk for letter in letters]

    assert [row.pk for row in operate.dead_letters(tenant=tenant)] == ids[:2]
    assert operate.acknowledge(ids, by="olga", tenant=tenant) == ids[:2]
    assert operate.requeue(ids[1:], tenant=tenant).job_ids == [ids[1]]
    assert operate.discard([ids[0], ids[2]], tenant=tenant) == [ids[0]]
    assert operate.cancel([mine.pk, other.pk], tenant=tenant).cancelled == [mine.pk]
    assert DeadLetter.objects.get() == letters[2]
    assert Job.objects.filter(pk=other.pk).exists()


@pytest.mark.parametrize("tenant", [(), "rival", ["rival", "globex"]])
def test_operations_do_not_find_what_is_anothers(tenant):
    """No tenants at all find nothing at all."""
    letter, step = DeadLetterFactory(tenant="acme", task="tests.samples.add"), StepFactory(tenant="acme", unknown=True)

    with pytest.raises(JobNotFoundError):
        operate.amend(letter.pk, args=[1, 2], kwargs={}, tenant=tenant)
    with pytest.raises(JobNotFoundError):
        listing.job(letter.pk, tenant=tenant)
    with pytest.raises(StepNotFoundError):
        operate.resolve_step(step.job_id, step.name, happened=False, tenant=tenant)
    assert listing.present(DeadLetter, [letter.pk], tenant=tenant) == set()
    assert listing.dead(listing.Wanted(tenant=tenant)).rows == []
    assert dead_groups(tenant=tenant).groups == []


def test_amend_tells_nothing_of_anothers_task():
    """A task that nobody knows must not be told apart from a job that is not there."""
    letter = DeadLetterFactory(tenant="acme", task="no.such.task")

    with pytest.raises(JobNotFoundError):
        operate.amend(letter.pk, args=[], kwargs={}, tenant="rival")


def test_workflow_is_found_by_who_may_see_all_its_jobs():
    """It tells of each of them, and cancelling it ends each."""
    mine, mixed = WorkflowFactory(tenant="acme"), WorkflowFactory(tenant="acme", is_mixed=True)

    assert flowing.find(mine.pk, tenant="acme") == mine
    for row, tenant in ((mixed, "acme"), (mine, "rival"), (mine, ())):
        with pytest.raises(WorkflowNotFoundError):
            flowing.cancel(row.pk, tenant=tenant)
    assert flowing.find(mixed.pk) == mixed
