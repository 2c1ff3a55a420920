"""Which dead letters are of one kind."""

from __future__ import annotations

import pytest

from django_workqueue.domain.fingerprints import LENGTH, MOST_LINE, fingerprint, normalised

TASK = "shop.tasks.send_receipt"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ValueError: order 17 is unknown", "ValueError: order 2341 is unknown"),
        ("IntegrityError: Key (id)=(0198f1ab-9c3d-7000-8000-1f2e3d4c5b6a)", "IntegrityError: Key (id)=(17)"),
        ("lapsed: Worker lost: web1:17:5f3a at 2026-01-02", "lapsed: Worker lost: web22:9:77aa at 2026-11-30"),
        ("ValueError: no\nwith details", "ValueError: no\nwith other details"),
        ("ValueError:  no ", "ValueError: no"),
    ],
)
def test_ids_and_numbers_do_not_split_a_group(one, other):
    """A message with an id in it would make a group of every letter (sentry's grouping has the same aim)."""
    assert fingerprint(TASK, one) == fingerprint(TASK, other)


@pytest.mark.parametrize(
    ("task", "error"),
    [
        ("shop.tasks.refund", "ValueError: no such order"),
        (TASK, "KeyError: no such order"),
        (TASK, "ValueError: no such address"),
        (TASK, ""),
    ],
)
def test_task_class_and_words_tell_groups_apart(task, error):
    """What needs another remedy is another group."""
    assert fingerprint(task, error) != fingerprint(TASK, "ValueError: no such order")


def test_fingerprint_is_bounded_whatever_the_error():
    """An error may be of any length, and hold what no encoding takes."""
    for error in ("x" * 100_000, "\ud800", "1" * 100_000, "\n\n"):
        assert len(fingerprint(TASK, error)) == LENGTH
        assert len(normalised(error)) <= MOST_LINE
