"""What ``runworkers`` was asked to do: what cannot work is refused by the option's name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.worker.options import WorkerOptions


def test_defaults_serve_everything(settings):
    """With the settings' own poll interval and database."""
    settings.WORKQUEUE = {"POLL_INTERVAL": 3}
    options = WorkerOptions()

    assert (options.queues, options.concurrency, options.listen) == (("*",), 8, True)
    assert options.poll_interval == timedelta(seconds=3)
    assert options.shutdown_timeout == timedelta(seconds=25)
    assert options.database == "default"


def test_patterns_are_told_with_the_exclusions_marked():
    """As the worker's row has them."""
    assert WorkerOptions(queues=("a", "b*"), exclude_queues=("bad",)).patterns == "a,b*,!bad"


def test_each_process_has_a_name_of_its_own():
    """A stable name belongs to one process."""
    assert WorkerOptions(name="web1", processes=2).of_process(2).name == "web1-2"
    assert WorkerOptions(processes=2).of_process(2).name == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"queues": ()}, "--queues is empty"),
        ({"queues": ("a,b",)}, "'a,b' is not a queue name"),
        ({"queues": ("!a",)}, "'!a' is not a queue name"),
        ({"exclude_queues": ("",)}, "'' is not a queue name"),
        ({"concurrency": 0}, "--concurrency is 0"),
        ({"max_jobs": 0}, "--max-jobs is 0"),
        ({"processes": 0}, "--processes is 0"),
        ({"max_lifetime": timedelta()}, "--max-lifetime"),
        ({"watchdog": timedelta(seconds=9)}, "--watchdog"),
        ({"name": "x" * 99, "processes": 4}, "--name has 99 characters; at most 98"),
        ({"poll_interval": timedelta()}, "--poll-interval"),
        ({"shutdown_timeout": timedelta(seconds=-1)}, "--shutdown-timeout"),
        ({"name": "x" * 101}, "--name has 101 characters"),
    ],
)
def test_option_that_cannot_work_is_refused_by_name(given, words):
    """Before anything is started."""
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        WorkerOptions(**given)
