"""Keys and digests of steps: made of what no redelivery changes, and of nothing else."""

from __future__ import annotations

import functools
from uuid import UUID

import pytest

from django_workqueue.domain.steps import STEP_LENGTH, check_step, digest, idempotency_key
from django_workqueue.exceptions import InvalidStepError, PayloadError

JOB = UUID(int=1)


def charge(amount, *, currency="EUR"):
    """Stand for a call with an effect."""


class Client:
    """Stand for a vendor's client."""

    def charge(self, amount):
        """Stand for a call with an effect."""

    def __call__(self, amount):
        """Stand for a call with an effect."""


def digest_of(*args, fn=charge, **kwargs) -> str:
    """Return the digest of a call."""
    return digest(fn, args, kwargs, step="charge", max_bytes=1000)


def test_key_is_the_same_in_every_process():
    """It is written down here: a key that changed with a release would repeat every effect under way."""
    key = idempotency_key("acme", JOB, "charge")

    assert key == "392276684d48a54ef4c047dc1bb0bfcdd62976387174191cff58f92b92f565af"


@pytest.mark.parametrize(
    "other", [("acme", JOB, "refund"), ("acme", UUID(int=2), "charge"), ("beta", JOB, "charge"), ("acme", JOB, "")]
)
def test_each_tenant_job_and_step_has_a_key_of_its_own(other):
    """And so has the job as a whole."""
    assert idempotency_key("acme", JOB, "charge") != idempotency_key(*other)


def test_parts_of_a_key_do_not_run_into_each_other():
    """What one part ends with is not what the next begins with."""
    assert idempotency_key("a", JOB, 'b","tenant":"c') != idempotency_key("c", JOB, "b")


def test_accent_that_is_written_in_another_way_is_the_same():
    """A step's name may come through an editor that composes differently."""
    assert idempotency_key("", JOB, "caf\u00e9") == idempotency_key("", JOB, "cafe\u0301")
    assert digest_of("caf\u00e9") == digest_of("cafe\u0301")


@pytest.mark.parametrize(("one", "other"), [(2, 2.0), (2, "2"), (1, True), (None, ""), ([1], [1, None]), (0.0, False)])
def test_arguments_of_another_type_are_others(one, other):
    """As they are in JSON. Numbers are not made equal behind the caller's back."""
    assert digest_of(one) != digest_of(other)


def test_order_of_named_arguments_changes_nothing():
    """It carries no meaning."""
    one, other = {"a": 1, "b": {"x": 1, "y": 2}}, {"b": {"y": 2, "x": 1}, "a": 1}

    assert digest(charge, (), one, step="s", max_bytes=99) == digest(charge, (), other, step="s", max_bytes=99)


def test_function_is_part_of_the_digest():
    """Another function under the same step is another effect."""
    fns = [charge, Client().charge, Client(), lambda amount: amount]

    assert len({digest_of(5, fn=fn) for fn in fns}) == len(fns)


def test_bound_arguments_count_as_arguments():
    """``functools.partial`` hides nothing."""
    assert digest_of(fn=functools.partial(charge, 5)) == digest_of(5)
    assert digest_of(5, fn=functools.partial(charge, currency="USD")) == digest_of(5, currency="USD")


@pytest.mark.parametrize("value", [object(), {1}, float("inf"), {1: 2}, (1,), "x" * 2000])
def test_argument_that_json_changes_is_refused(value):
    """It could not be compared with that of a replay. Infinity is refused like the rest."""
    with pytest.raises(PayloadError, match="step 'charge': arguments"):
        digest_of(value)


@pytest.mark.parametrize("name", ["", None, 7, "a\nb", "a\x00", "\ud800", "x" * (STEP_LENGTH + 1)])
def test_step_without_a_usable_name_is_refused(name):
    """Before anything is done."""
    with pytest.raises(InvalidStepError):
        check_step(name)
