"""What a task may know of its own delivery, and the trace that travels."""

from __future__ import annotations

import dataclasses
import uuid

import pydantic
import pytest

from django_workqueue import JobContext


def context(**changes) -> JobContext:
    """Return the context of a first attempt."""
    values = {
        "job_id": uuid.UUID(int=1),
        "queue": "mail",
        "tenant": "acme",
        "attempt": 1,
        "max_attempts": 3,
        "last_error": None,
        "load_result": lambda: "the result",
        "ledger": None,
    }
    return JobContext(**values | changes)


@pytest.mark.parametrize(
    ("attempt", "retry", "last"), [(1, False, False), (2, True, False), (3, True, True), (4, True, True)]
)
def test_attempt_knows_its_place(attempt, retry, last):
    """The last one may file an alert before it raises again."""
    made = context(attempt=attempt)

    assert (made.is_retry, made.is_last_attempt) == (retry, last)


def test_context_cannot_be_changed():
    """It is a statement of fact."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        context().attempt = 2


def test_trace_is_read_from_the_metadata():
    """What came with the job."""
    made = context(metadata={"correlation_id": "req-1", "user": 3})

    assert (made.correlation_id, made.traceparent) == ("req-1", None)
    assert made.metadata["user"] == 3


def test_job_without_a_correlation_id_has_its_own_id_for_one():
    """It is the first of its story: what it enqueues carries that id on."""
    assert context().correlation_id == "00000000-0000-0000-0000-000000000001"


def test_result_is_loaded_when_it_is_asked_for():
    """A task that does not ask costs no query."""
    asked = []
    made = context(load_result=lambda: asked.append(1) or "the result")

    assert asked == []
    assert made.task_result == "the result"
    assert "load_result" not in repr(made)


def test_pydantic_passes_a_context_on_as_it_is():
    """Injectors check arguments by their annotations; the fields of a context are no data to be checked or copied."""
    adapter = pydantic.TypeAdapter(JobContext)
    made = context()

    assert adapter.validate_python(made) is made
    with pytest.raises(pydantic.ValidationError, match="instance of JobContext"):
        adapter.validate_python({"attempt": 1})
