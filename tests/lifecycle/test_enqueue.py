"""Enqueue: what is stored, and what is refused before anything is."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import uuid
from dataclasses import dataclass

import pytest
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from django_workqueue import correlation_id, traceparent
from django_workqueue.domain.states import JobState
from django_workqueue.exceptions import InvalidJobError, PayloadError, PayloadTooLargeError
from django_workqueue.lifecycle.enqueue import JobRequest, enqueue
from django_workqueue.models import Job

pytestmark = pytest.mark.django_db


class Colour(enum.StrEnum):
    """An enumeration whose members are strings."""

    RED = "red"


@dataclass
class Point:
    """A value object."""

    x: int = 1


def enqueue_one(**request) -> Job:
    """Enqueue one job and return its row as the database has it."""
    [(job, _)] = enqueue([JobRequest(**{"task": "tests.samples.add"} | request)])
    return Job.objects.get(pk=job.pk)


# -- what is stored ---------------------------------------------------------------------------------------------------


def test_job_is_ready_at_once():
    """Without a time of its own a job may be claimed as soon as it is committed."""
    job = enqueue_one(args=[1, 2])

    assert job.state == JobState.READY
    assert (job.attempts, job.interruptions, job.lapses, job.lease_id) == (0, 0, 0, None)
    assert job.ready_at == job.enqueued_at
    assert abs(timezone.now() - job.ready_at) < dt.timedelta(minutes=1)


def test_ids_ascend_in_the_order_of_enqueueing():
    """Within one statement all jobs have one stamp, and the id keeps them first in, first out."""
    stored = enqueue([JobRequest(task="tests.samples.add") for _ in range(50)])

    ids = [job.pk for job, _ in stored]
    assert ids == sorted(ids)
    assert list(Job.objects.order_by("ready_at", "id").values_list("pk", flat=True)) == ids


def test_trailing_slash_names_the_same_queue():
    """``mail`` and ``mail/`` are one queue."""
    assert enqueue_one(queue="mail/").queue == "mail"


def test_attempts_come_from_the_queue_unless_the_task_says_otherwise(settings):
    """An operator sets them for a queue, a task for itself; the job keeps what held when it was enqueued."""
    settings.WORKQUEUE = {"MAX_ATTEMPTS": 4, "QUEUES": {"mail": {"MAX_ATTEMPTS": 9}}}

    assert enqueue_one().max_attempts == 4
    assert enqueue_one(queue="mail").max_attempts == 9
    assert enqueue_one(queue="mail", max_attempts=2).max_attempts == 2


def test_delay_holds_a_job_back():
    """A deferred job is a row that no worker holds (celery/kombu#533)."""
    job = enqueue_one(run_after=dt.timedelta(minutes=5))

    assert job.state == JobState.SCHEDULED
    assert abs(job.ready_at - job.enqueued_at - dt.timedelta(minutes=5)) < dt.timedelta(seconds=10)


def test_moment_holds_a_job_back_until_then():
    """The due time is kept to the microsecond, whatever zone it was given in."""
    due = timezone.now().astimezone(dt.timezone(dt.timedelta(hours=5))) + dt.timedelta(hours=2)

    assert enqueue_one(run_after=due).ready_at == due


@pytest.mark.parametrize("run_after", [dt.timedelta(), dt.timedelta(seconds=-5)])
def test_delay_of_nothing_is_ready(run_after):
    """Only a time that is still to come defers a job."""
    assert enqueue_one(run_after=run_after).state == JobState.READY


def test_past_moment_is_ready():
    """A due time that has passed is no reason to wait for the next promotion."""
    assert enqueue_one(run_after=timezone.now() - dt.timedelta(hours=1)).state == JobState.READY


@pytest.mark.parametrize("run_after", ["tomorrow", 5])
def test_time_of_another_type_is_refused(run_after):
    """Five what? Seconds are said by a timedelta."""
    with pytest.raises(InvalidJobError, match="timedelta"):
        enqueue_one(run_after=run_after)


@pytest.mark.parametrize(
    ("zone_aware", "run_after"),
    [
        (True, dt.datetime(2099, 1, 1)),  # noqa: DTZ001 - a naive time is the subject
        (False, dt.datetime(2099, 1, 1)),  # noqa: DTZ001 - as above
        (False, dt.datetime(2099, 1, 1, tzinfo=dt.UTC)),
        (False, dt.timedelta(hours=1)),
    ],
)
def test_times_may_be_given_with_and_without_zones(settings, zone_aware, run_after):
    """Projects that set USE_TZ to False have a queue as well."""
    settings.USE_TZ = zone_aware

    assert enqueue_one(run_after=run_after).state == JobState.SCHEDULED


def test_metadata_is_stored_apart_from_the_arguments():
    """The body stays exactly as it was given."""
    job = enqueue_one(args=[1], metadata={"user": 3})

    assert job.decoded_metadata == {"user": 3}
    assert job.decoded_args == [1]


def test_trace_of_the_enqueuing_context_travels():
    """Correlation id and trace context are taken along, and given metadata wins."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    tokens = (correlation_id.set("req-1"), traceparent.set(parent))
    try:
        traced = enqueue_one().decoded_metadata
        named = enqueue_one(metadata={"correlation_id": "mine"}).decoded_metadata
    finally:
        correlation_id.reset(tokens[0])
        traceparent.reset(tokens[1])

    assert traced == {"correlation_id": "req-1", "traceparent": parent}
    assert named["correlation_id"] == "mine"


def test_bad_trace_around_an_enqueue_does_not_fail_it():
    """It came with a stranger's request, and the order is worth more than its trace."""
    token = correlation_id.set("\"'; drop")
    try:
        assert enqueue_one().decoded_metadata == {}
    finally:
        correlation_id.reset(token)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"correlation_id": "a\nb"}, r"metadata\['correlation_id'\] is 'a\\nb'"),
        ({"traceparent": "00-abc"}, r"metadata\['traceparent'\] is '00-abc'"),
        ({"_hidden": 1}, "'_hidden'"),
        ([1], r"metadata is \[1\]. Pass a dict"),
    ],
)
def test_bad_metadata_is_refused_by_name(metadata, message):
    """Before anything is written."""
    with pytest.raises(InvalidJobError, match=message):
        enqueue_one(metadata=metadata)

    assert not Job.objects.exists()


# -- arguments that would not come back as they went in ---------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63) - 1,
        1.5,
        1e22,
        -0.0,
        5e-324,
        "",
        "grüße 🎉 \u2028 \x01 \\ \"'",
        [],
        {},
        {"": [{"a": [None, False, 1, 1.0, "1"]}]},
        [[[[1]]]],
    ],
)
def test_json_values_come_back_equal_and_of_the_same_type(value):
    """Text columns keep what a database's own JSON type would change: 1e22 came back as an integer from one."""
    [back] = enqueue_one(args=[value]).decoded_args

    assert (back, type(back), repr(back)) == (value, type(value), repr(value))


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.date(2026, 1, 1),
        dt.timedelta(1),
        uuid.UUID(int=1),
        decimal.Decimal("1.1"),
        {1, 2},
        frozenset(),
        (1, 2),
        b"bytes",
        Colour.RED,
        mark_safe("text"),
        gettext_lazy("text"),
        Point(),
        object(),
        range(3),
        1j,
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"key": [v]}], ids=["bare", "list", "nested"])
def test_other_types_are_refused_by_name(value, wrap, django_assert_num_queries):
    """A clear error at the door, never a silent change of type (RealOrangeOne/django-tasks#134)."""
    with django_assert_num_queries(0), pytest.raises(PayloadError) as caught:
        enqueue_one(kwargs={"order": wrap(value)})

    assert caught.value.path.startswith("kwargs['order']")
    assert type(value).__name__ in str(caught.value)


def test_path_leads_to_the_value():
    """The message names the place within nested arguments."""
    with pytest.raises(PayloadError, match=r"args\[1\]\['lines'\]\[0\]\['when'\] is of type datetime.date"):
        enqueue_one(args=[1, {"lines": [{"when": dt.date(2026, 1, 1)}]}])


@pytest.mark.parametrize("key", [1, None, True, (1,), 1.5])
def test_keys_that_are_no_text_are_refused(key):
    """JSON would turn the key 1 into "1", and the task would look for 1."""
    with pytest.raises(PayloadError, match="Use str keys"):
        enqueue_one(args=[{key: "value"}])


@pytest.mark.parametrize(
    "value", ["a\x00b", ["a\x00b"], {"key": "a\x00b"}, {"a\x00b": 1}], ids=["bare", "list", "value", "key"]
)
def test_nul_is_refused_alike_on_every_database(value, django_assert_num_queries):
    """PostgreSQL cannot store it, and others must not accept what it refuses (hardbyte/awa#85)."""
    with django_assert_num_queries(0), pytest.raises(PayloadError, match="NUL"):
        enqueue_one(args=[value])


@pytest.mark.parametrize("value", ["\ud800", ["x\udfff"], {"\udc80": 1}], ids=["bare", "list", "key"])
def test_half_a_surrogate_pair_is_refused(value):
    """It is no text, and no database stores it."""
    with pytest.raises(PayloadError, match="surrogate"):
        enqueue_one(args=[value])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"key": v}], ids=["bare", "list", "dict"])
def test_numbers_that_json_lacks_are_refused(value, wrap):
    """Python writes them without complaint; other readers of JSON do not (encode/django-rest-framework#5235)."""
    with pytest.raises(PayloadError, match="JSON does not have"):
        enqueue_one(args=[wrap(value)])


def test_integer_too_long_to_be_read_back_is_refused():
    """Python writes it and refuses to read it again."""
    with pytest.raises(PayloadError, match="too long"):
        enqueue_one(args=[10**5000])


def test_longest_integer_that_is_accepted_is_read_back():
    """The limit lies on the safe side of Python's own."""
    value = (1 << 14_000) - 1

    assert enqueue_one(args=[value]).decoded_args == [value]


def test_circular_arguments_are_refused():
    """No end of nesting, and no RecursionError."""
    loop: list = []
    loop.append(loop)

    with pytest.raises(PayloadError, match="nested more than"):
        enqueue_one(args=[loop])


def test_depth_that_is_accepted_is_read_back():
    """What passes the door can be decoded by a worker."""
    value: list = []
    for _ in range(97):
        value = [value]

    assert enqueue_one(args=[value]).decoded_args == [value]


def test_payload_above_the_limit_is_refused_before_any_write(settings, django_assert_num_queries):
    """The size has a limit and a message of its own, which no notification lowers (saurabhnanda/odd-jobs#42)."""
    settings.WORKQUEUE = {"MAX_PAYLOAD_BYTES": 1000}

    with django_assert_num_queries(0), pytest.raises(PayloadTooLargeError, match="MAX_PAYLOAD_BYTES"):
        enqueue_one(args=["x" * 1000])


def test_size_is_counted_in_bytes(settings):
    """Sixty letters may be more than a hundred bytes."""
    settings.WORKQUEUE = {"MAX_PAYLOAD_BYTES": 100}

    enqueue_one(args=["a" * 60])
    with pytest.raises(PayloadTooLargeError, match="takes 124 bytes"):
        enqueue_one(args=["ä" * 60])


def test_megabyte_is_stored_when_it_is_permitted(settings):
    """The notification carries the lane alone, so its limit of 8,000 bytes is no limit for payloads."""
    settings.WORKQUEUE = {"MAX_PAYLOAD_BYTES": 2_000_000}
    text = "x" * 1_000_000

    assert enqueue_one(args=[text]).decoded_args == [text]


def test_stored_arguments_are_compact_json():
    """Other programs may read the columns."""
    job = enqueue_one(args=[1, "ä"], kwargs={"a": {"b": None}})

    assert (job.args, job.kwargs) == ('[1,"ä"]', '{"a":{"b":null}}')
    assert json.loads(job.kwargs) == {"a": {"b": None}}


# -- options that cannot be used --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"queue": ""}, "queue is empty"),
        ({"queue": "/"}, "queue is empty"),
        ({"queue": "q" * 101}, "queue has 101 characters"),
        ({"queue": 7}, "queue is 7, of type int"),
        ({"queue": "a\nb"}, "control characters"),
        ({"queue": ["a"]}, "of type list"),
        ({"tenant": {}}, "of type dict"),
        ({"tenant": "t" * 101}, "tenant has 101 characters"),
        ({"tenant": None}, "tenant is None"),
        ({"tenant": "a\x00"}, "NUL"),
        ({"tenant": "\ud800"}, "surrogate"),
        ({"task": "t" * 301}, "task path has 301 characters"),
        ({"dedupe_key": ""}, "dedupe_key is empty"),
        ({"dedupe_key": "k" * 201}, "dedupe_key has 201 characters"),
        ({"dedupe_key": 7}, "dedupe_key is 7"),
        ({"dedupe_until": "never"}, "dedupe_until is 'never'"),
        ({"priority": 101}, "priority is 101"),
        ({"priority": -101}, "priority is -101"),
        ({"priority": True}, "priority is True"),
        ({"max_attempts": 0}, "max_attempts is 0"),
        ({"max_attempts": 32768}, "max_attempts is 32768"),
        ({"max_attempts": 2.0}, "max_attempts is 2.0"),
        ({"metadata": {"_private": 1}}, "'_private'"),
        ({"metadata": {"when": dt.date(2026, 1, 1)}}, r"metadata\['when'\]"),
        ({"job_id": "x"}, "job_id is 'x'"),
        ({"job_id": str(uuid.UUID(int=1))}, "Pass a uuid.UUID"),
    ],
)
def test_unusable_option_is_refused_before_any_write(request_, words, django_assert_num_queries):
    """The message names the option and its value; nothing is cut short in silence."""
    with django_assert_num_queries(0), pytest.raises((InvalidJobError, PayloadError), match=words):
        enqueue_one(**request_)


def test_names_of_people_are_names_of_tenants():
    """Any printable text names a tenant."""
    assert enqueue_one(tenant="Société Générale 株式会社").tenant == "Société Générale 株式会社"


def test_refusal_is_not_worth_another_try():
    """A task that enqueues nonsense fails for good: the next attempt would enqueue the same."""
    assert InvalidJobError.retryable is PayloadError.retryable is False


def test_one_bad_request_keeps_all_out(django_assert_num_queries):
    """A batch is checked as a whole before the first write."""
    good, bad = JobRequest(task="tests.samples.add"), JobRequest(task="tests.samples.add", priority=101)

    with django_assert_num_queries(0), pytest.raises(InvalidJobError):
        enqueue([good, bad])
