"""The trace: what is taken along with a job, what is refused, and what holds in its run."""

from __future__ import annotations

import contextvars
import logging
import uuid

import pytest

from django_workqueue import InvalidJobError, correlation_id, traceparent
from django_workqueue.domain.trace import captured_trace, checked_trace, restore_trace

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
JOB_ID = uuid.UUID("0192f0c1-2d3e-7abc-8def-0123456789ab")


def alone(function):
    """Run ``function`` in a context of its own, as each job has one, and return its answer."""
    return contextvars.Context().run(function)


def captured(correlation=None, parent=None):
    """Return what is taken along where these are set."""

    def look():
        correlation_id.set(correlation)
        traceparent.set(parent)
        return captured_trace()

    return alone(look)


def test_nothing_is_taken_along_where_nothing_is_set():
    """Those who use no trace store none."""
    assert alone(captured_trace) == {}


def test_variable_can_be_set_and_reset():
    """As every context variable: a middleware takes back what it set."""

    def set_and_reset():
        token = correlation_id.set("req-1")
        inside = correlation_id.get()
        correlation_id.reset(token)
        return inside, correlation_id.get()

    assert alone(set_and_reset) == ("req-1", None)


@pytest.mark.parametrize(
    "value", ["r", "req-1", "x" * 200, "Bestellung 7 für Zoë", "a\\b", "0192f0c1-2d3e-7abc-8def-0123456789ab"]
)
def test_sound_correlation_id_is_taken_along(value):
    """Any printable text of up to 200 characters."""
    assert captured(value) == {"correlation_id": value}
    assert checked_trace({"correlation_id": value}) == {"correlation_id": value}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x" * 201,
        "a\nb",
        "a\x00b",
        "a\x1b[31mb",
        "a\u2028b",
        "a\ud800b",
        'a"b',
        "a'b",
        "a`b",
        7,
        b"req-1",
        ["req-1"],
    ],
)
def test_bad_correlation_id_is_left_out_or_refused_by_name(value, caplog):
    """Around an enqueue it may be a stranger's header, and must not fail a request; in the metadata it is a slip."""
    with caplog.at_level(logging.DEBUG, logger="django_workqueue.enqueue"):
        assert captured(value) == {}
    with pytest.raises(InvalidJobError, match=r"^metadata\['correlation_id'\] (is|has)"):
        checked_trace({"correlation_id": value})

    [record] = caplog.records
    assert record.levelno == logging.DEBUG
    assert record.getMessage().startswith("A correlation_id was not taken along")
    assert "\n" not in record.getMessage()


@pytest.mark.parametrize(
    "value",
    [
        PARENT,
        PARENT[:-2] + "00",
        "cc" + PARENT[2:],
        "cc" + PARENT[2:] + "-what-a-later-version-adds",
    ],
)
def test_sound_trace_context_is_taken_along(value):
    """Of version 00, and of a later one that says more (W3C Trace Context, Versioning)."""
    assert captured(None, value) == {"traceparent": value}
    assert checked_trace({"traceparent": value}) == {"traceparent": value}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "abc",
        PARENT.upper(),
        PARENT + "-more",
        PARENT + "\n",
        "ff" + PARENT[2:],
        PARENT.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        PARENT.replace("b7ad6b7169203331", "0" * 16),
        PARENT[:-1],
        "cc" + PARENT[2:] + "-" + "x" * 200,
        "cc" + PARENT[2:] + "-\x00",
        7,
    ],
)
def test_bad_trace_context_is_left_out_or_refused_by_name(value):
    """A tracer that is given nonsense begins a trace of its own; here is where that can still be noticed."""
    assert captured(None, value) == {}
    with pytest.raises(InvalidJobError, match=r"^metadata\['traceparent'\] is .*W3C trace context"):
        checked_trace({"traceparent": value})


def test_none_carries_none():
    """Whoever enqueues may keep a job out of the story around it."""
    assert checked_trace({"correlation_id": None, "traceparent": None, "user": 3}) == {"user": 3}


def test_trace_is_restored_whole():
    """What a job enqueues carries the trace on, and nothing of an earlier one is left in it."""

    def look():
        traceparent.set(PARENT)
        restore_trace(JOB_ID, {"correlation_id": "req-1"})
        return captured_trace()

    assert alone(look) == {"correlation_id": "req-1"}


@pytest.mark.parametrize("metadata", [{}, {"correlation_id": 7, "traceparent": 7}])
def test_job_without_a_trace_begins_a_story_of_its_own(metadata):
    """Its id is the correlation id of what it enqueues; a row that was damaged by hand does not stop it."""

    def look():
        restore_trace(JOB_ID, metadata)
        return correlation_id.get(), captured_trace()

    assert alone(look) == (str(JOB_ID), {"correlation_id": str(JOB_ID)})
