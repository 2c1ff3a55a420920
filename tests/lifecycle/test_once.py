"""Once: at most one effect for each step, and an honest answer where nobody can know."""

from __future__ import annotations

import asyncio
import logging

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError, transaction

from django_workqueue import (
    InvalidStepError,
    KeyMismatchError,
    LeaseLostError,
    PayloadError,
    PayloadTooLargeError,
    StepInFlightError,
    StepUnknownError,
)
from django_workqueue.domain.link import NoLink
from django_workqueue.domain.states import StepState
from django_workqueue.lifecycle.once import Ledger
from django_workqueue.lifecycle.run import _context
from django_workqueue.models import Step
from tests.claims import claim_one, fail
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db


class IndeterminateError(Exception):
    """Says that the effect may have happened."""

    indeterminate = True


class Vendor:
    """Counts its charges, and answers as the test says."""

    def __init__(self, *answers) -> None:
        self.charges = []
        self._answers = list(answers)

    def charge(self, amount, **_options):
        """Charge, and answer or raise."""
        self.charges.append(amount)
        answer = self._answers.pop(0) if self._answers else f"receipt {len(self.charges)}"
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def begin_charge(self, amount):
        """Make a coroutine that will charge."""
        return self.acharge(amount)

    async def acharge(self, amount):
        """Do so for coroutines."""
        await asyncio.sleep(0)
        return self.charge(amount)


def context_of(store, job):
    """Return the context that an attempt's body is given."""
    ledger = Ledger(store, job, "worker-1", depth=store.transaction_depth())
    return _context(job, {}, lambda: None, ledger, NoLink())


@pytest.fixture
def job(store):
    """Return a claimed job."""
    JobFactory(tenant="acme")
    return claim_one(store, "acme")


@pytest.fixture
def context(store, job):
    """Return the context of its first attempt."""
    return context_of(store, job)


def next_attempt(store, job):
    """Fail the attempt, and return the context of the one after it."""
    assert fail(store, job)
    return context_of(store, claim_one(store, "acme"))


# -- the outcome -------------------------------------------------------------------------------------------------


def test_second_attempt_is_given_the_outcome_of_the_first(store, job, context, caplog):
    """One effect, however often the job is delivered."""
    vendor = Vendor()
    first = context.once("charge", vendor.charge, 5)
    with caplog.at_level(logging.INFO, logger="django_workqueue"):
        second = next_attempt(store, job).once("charge", vendor.charge, 5)

    assert (first, second, vendor.charges) == ("receipt 1", "receipt 1", [5])
    record = caplog.records[-1]
    assert "was done before" in record.getMessage()
    assert (record.step, record.step_key) == ("charge", context.idempotency_key("charge"))


def test_another_step_is_another_effect(context):
    """On purpose."""
    vendor = Vendor()

    assert [context.once(f"charge {number}", vendor.charge, 5) for number in (1, 2)] == ["receipt 1", "receipt 2"]
    assert Step.objects.count() == 2


def test_first_call_is_given_what_replays_are_given(store, job, context):
    """A tuple that comes back as a list the next time would be found out by the first crash only."""
    vendor = Vendor((1, {"a": None}))

    assert context.once("charge", vendor.charge, 5) == [1, {"a": None}]
    assert next_attempt(store, job).once("charge", vendor.charge, 5) == [1, {"a": None}]


def test_nothing_is_an_outcome_too(store, job, context):
    """A function that returns nothing is not called again for that."""
    vendor = Vendor(None)

    assert context.once("charge", vendor.charge, 5) is None
    assert next_attempt(store, job).once("charge", vendor.charge, 5) is None
    assert vendor.charges == [5]


@pytest.mark.parametrize(("answer", "error"), [(object(), PayloadError), ("x" * 400_000, PayloadTooLargeError)])
def test_outcome_that_cannot_be_stored_is_an_effect_all_the_same(store, job, context, answer, error):
    """The attempt fails by name, and no replay does it again, whatever its policy: it did happen."""
    vendor = Vendor(answer)
    with pytest.raises(error, match="the outcome of step 'charge'"):
        context.once("charge", vendor.charge, 5)
    again = next_attempt(store, job)
    for policy in ("raise", "retry"):
        with pytest.raises(StepUnknownError, match="is done, but its outcome could not be stored") as raised:
            again.once("charge", vendor.charge, 5, on_unknown=policy)

    assert raised.value.reason == "unstorable"
    assert vendor.charges == [5]


# -- other arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("args", "kwargs"), [((6,), {}), ((5,), {"note": "x"}), ((5.0,), {})])
def test_step_with_other_arguments_does_nothing(store, job, context, args, kwargs):
    """Neither of the two would be what was meant."""
    vendor = Vendor()
    context.once("charge", vendor.charge, 5)
    with pytest.raises(KeyMismatchError, match="Step 'charge'") as raised:
        next_attempt(store, job).once("charge", vendor.charge, *args, **kwargs)

    assert raised.value.stored_digest != raised.value.digest
    assert not raised.value.retryable
    assert vendor.charges == [5]


def test_unknown_step_with_other_arguments_is_not_called_again(store, job, context):
    """The policy is about the same effect."""
    vendor = Vendor(IndeterminateError())
    with pytest.raises(IndeterminateError):
        context.once("charge", vendor.charge, 5)
    with pytest.raises(KeyMismatchError):
        next_attempt(store, job).once("charge", vendor.charge, 6, on_unknown="retry")

    assert vendor.charges == [5]


# -- what raises -------------------------------------------------------------------------------------------------


def test_function_that_raises_frees_its_step(context):
    """It says that the effect did not happen."""
    vendor = Vendor(ValueError("card declined"))
    with pytest.raises(ValueError, match="card declined"):
        context.once("charge", vendor.charge, 5)

    assert not Step.objects.exists()
    assert context.once("charge", vendor.charge, 5) == "receipt 2"


@pytest.mark.parametrize("error", [IndeterminateError("timed out"), SystemExit(), KeyboardInterrupt()])
def test_call_that_was_broken_off_is_unknown(context, caplog, error):
    """Also to the same attempt, at once: nobody can say whether the request got through."""
    vendor = Vendor(error)
    with pytest.raises(type(error)), caplog.at_level(logging.WARNING, logger="django_workqueue"):
        context.once("charge", vendor.charge, 5)
    with pytest.raises(StepUnknownError, match="may have happened") as raised:
        context.once("charge", vendor.charge, 5)

    assert (raised.value.reason, raised.value.retryable) == ("ended", False)
    assert f"broken off by {type(error).__name__}" in caplog.text
    assert "timed out" not in caplog.text


def test_what_the_function_raised_passes_although_the_step_cannot_be_freed(store, context, monkeypatch):
    """The database is away; the step stays begun, which is unknown once the attempt is over."""
    vendor = Vendor(ValueError("card declined"))

    def away(_step):
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(store, "free_step", away)
    with pytest.raises(ValueError, match="card declined"):
        context.once("charge", vendor.charge, 5)

    assert Step.objects.get().state == StepState.BEGUN


# -- unknown, and in flight --------------------------------------------------------------------------------------


def begun_by(store, job, vendor):
    """Begin the step as an attempt does that dies inside it."""
    context_of(store, job).ledger._begin("charge", vendor.charge, (5,), {}, "raise")


def test_step_of_an_attempt_that_died_inside_is_unknown(store, job):
    """It is not guessed. The job goes to the dead letters, and a person decides."""
    vendor = Vendor()
    begun_by(store, job, vendor)
    with pytest.raises(StepUnknownError):
        next_attempt(store, job).once("charge", vendor.charge, 5)

    assert vendor.charges == []


def test_caller_may_choose_to_call_an_unknown_step_again(store, job, caplog):
    """Where the vendor recognises a repeated request by its key."""
    vendor = Vendor()
    begun_by(store, job, vendor)
    again = next_attempt(store, job)
    with caplog.at_level(logging.WARNING, logger="django_workqueue"):
        assert again.once("charge", vendor.charge, 5, on_unknown="retry") == "receipt 1"

    assert "is unknown and is called again" in caplog.text
    assert again.once("charge", vendor.charge, 5) == "receipt 1"


def test_step_in_flight_is_a_conflict_that_passes(store, job, context):
    """The job comes back when the lease of who is at it would have run out."""
    vendor = Vendor()
    begun_by(store, job, vendor)
    for policy in ("raise", "retry"):
        with pytest.raises(StepInFlightError) as raised:
            context.once("charge", vendor.charge, 5, on_unknown=policy)

    assert raised.value.retryable
    assert 1 <= raised.value.delay.total_seconds() <= 30
    assert vendor.charges == []


def test_lost_lease_begins_nothing(store, job, context):
    """Another attempt may be at it."""
    store.shift(31)
    vendor = Vendor()
    with pytest.raises(LeaseLostError) as raised:
        context.once("charge", vendor.charge, 5)

    assert raised.value.reason == "expired"
    assert vendor.charges == []
    assert not Step.objects.exists()


def test_late_outcome_is_recorded_as_long_as_nobody_began_anew(store, job, context):
    """The lease is lost, but what happened has happened, and the next attempt is better off for knowing."""
    vendor = Vendor()

    def charge_slowly(amount):
        store.shift(31)
        return vendor.charge(amount)

    assert context.once("charge", charge_slowly, 5) == "receipt 1"
    assert Step.objects.get().state == StepState.DONE


def test_late_outcome_of_a_step_that_was_done_again_gives_way(store, job, context):
    """The first that is recorded wins, and both are told the same."""
    vendor = Vendor()

    def charge_while_another_does(amount):
        again = next_attempt(store, job)
        again.once("charge", charge_while_another_does_not, amount, on_unknown="retry")
        return "late"

    def charge_while_another_does_not(amount):
        return vendor.charge(amount)

    charge_while_another_does.__qualname__ = charge_while_another_does_not.__qualname__

    assert context.once("charge", charge_while_another_does, 5) == "receipt 1"


def test_late_outcome_of_a_step_that_is_being_done_again_is_refused(store, job, context):
    """The attempt that counts is the other one."""

    def charge(_amount):
        again = next_attempt(store, job)
        Step.objects.update(id=again.job_id)
        return "late"

    with pytest.raises(LeaseLostError):
        context.once("charge", charge, 5)

    assert Step.objects.get().outcome == ""


# -- at the door -------------------------------------------------------------------------------------------------


def test_open_transaction_is_refused(context):
    """A rollback would take the record away and leave the effect."""
    vendor = Vendor()
    with transaction.atomic(), pytest.raises(InvalidStepError, match="inside a transaction"):
        context.once("charge", vendor.charge, 5)

    assert vendor.charges == []


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_step_without_a_usable_name_does_nothing(context, name):
    """It is refused before the call."""
    vendor = Vendor()
    with pytest.raises(InvalidStepError):
        context.once(name, vendor.charge, 5)
    with pytest.raises(InvalidStepError):
        context.idempotency_key("x" * 201)

    assert vendor.charges == []


def test_argument_that_json_does_not_have_does_nothing(context):
    """It could not be compared with that of a replay."""
    vendor = Vendor()
    with pytest.raises(PayloadError):
        context.once("charge", vendor.charge, object())

    assert vendor.charges == []


def test_unknown_policy_is_refused(context):
    """A word that is mistyped must not pass for either."""
    with pytest.raises(InvalidStepError, match="'ignore'"):
        context.once("charge", Vendor().charge, 5, on_unknown="ignore")


@pytest.mark.parametrize("method", ["acharge", "begin_charge"])
def test_coroutine_is_refused_by_the_plain_form(context, method):
    """Nothing has happened by making it, so the step stays free."""
    vendor = Vendor()
    with pytest.raises(InvalidStepError, match="aonce"):
        context.once("charge", getattr(vendor, method), 5)

    assert not Step.objects.exists()
    assert vendor.charges == []


# -- coroutines --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["charge", "acharge", "begin_charge"])
def test_coroutines_have_their_form(store, job, context, method):
    """For coroutine functions and for plain ones, also those that make a coroutine."""
    vendor = Vendor()
    again = None

    async def twice():
        nonlocal again
        first = await context.aonce("charge", getattr(vendor, method), 5)
        again = await sync_to_async(next_attempt)(store, job)
        return first, await again.aonce("charge", getattr(vendor, method), 5)

    assert asyncio_run(twice) == ("receipt 1", "receipt 1")
    assert vendor.charges == [5]


def test_coroutine_that_is_cancelled_inside_a_step_leaves_it_unknown(context):
    """The request may be on its way."""

    async def cancel():
        calling = asyncio.Event()

        async def hang(_amount):
            calling.set()
            await asyncio.Event().wait()

        running = asyncio.ensure_future(context.aonce("charge", hang, 5))
        await calling.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio_run(cancel)

    assert Step.objects.get().state == StepState.UNKNOWN


def test_coroutine_that_raises_frees_its_step(context):
    """As the plain form does."""
    vendor = Vendor(ValueError("card declined"))

    async def attempt():
        with pytest.raises(ValueError, match="card declined"):
            await context.aonce("charge", vendor.acharge, 5)

    asyncio_run(attempt)

    assert not Step.objects.exists()


def asyncio_run(body):
    """Run a coroutine whose synchronous parts use the test's own connection."""
    return async_to_sync(body)()
