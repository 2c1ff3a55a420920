"""The demonstration's books: they balance when all is well, and name each thing that is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from testproject.shop.demo.books import Attempt, Books, read_mails
from testproject.shop.demo.customers import Accepted
from testproject.shop.demo.endpoint import Delivery
from testproject.shop.demo.report import book_lines

#: Two orders: one of a shop that is well, whose webhook met a busy server once, and one of the refusing shop.
BALANCED = Books(
    accepted=[Accepted(1, "bakery", "mail-1", "hook-1"), Accepted(2, "hardware", "mail-2", "hook-2")],
    declined=1,
    refusing="hardware",
    killed_with={"mail-2"},
    stored_orders={1, 2},
    live=[],
    done=["mail-1", "hook-1", "mail-2"],
    dead=["hook-2"],
    failures=[Attempt("hook-1", "error"), Attempt("hook-2", "rejected"), Attempt("mail-2", "lapsed")],
    mails=Counter({"mail-1": 1, "mail-2": 1}),
    deliveries=[
        Delivery("hook-1", "bakery", 503),
        Delivery("hook-1", "bakery", 200),
        Delivery("hook-2", "hardware", 400),
    ],
)


def lines(books):
    """Return the report as account -> number."""
    return {line[:24].strip(): int(line[24:30]) for line in book_lines(books)}


def test_balanced_books_have_no_faults():
    """Retried, reaped and dead jobs are no faults when each has its cause."""
    assert BALANCED.faults() == []


def test_report_counts_every_account():
    """The printed numbers are those of the books."""
    assert lines(BALANCED) == {
        "orders accepted": 2,
        "orders rolled back": 1,
        "jobs enqueued": 4,
        "done": 3,
        "dead": 1,
        "unfinished": 0,
        "lost": 0,
        "attempts retried": 1,
        "attempts reaped": 1,
        "e-mails": 2,
        "webhooks delivered": 1,
        "repeated effects": 0,
    }


def test_repeat_by_a_reaped_job_is_allowed_and_counted():
    """A job whose lease lapsed may have sent its e-mail before: at least once, and the report says so."""
    books = replace(BALANCED, mails=Counter({"mail-1": 1, "mail-2": 2}))

    assert books.faults() == []
    assert lines(books)["repeated effects"] == 1
    assert any("for 2 orders, 1 of them twice" in line for line in book_lines(books))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"done": ["hook-1", "mail-2"]}, "lost"),
        ({"done": [*BALANCED.done, "mail-9"]}, "rolled back"),
        ({"deliveries": [*BALANCED.deliveries, Delivery("hook-9", "bakery", 200)]}, "rolled back"),
        ({"live": ["mail-1"], "done": ["hook-1", "mail-2"]}, "unfinished"),
        ({"live": ["mail-1"]}, "in two places"),
        ({"dead": ["hook-2", "mail-1"], "done": ["hook-1", "mail-2"]}, "dead without cause"),
        ({"dead": [], "done": [*BALANCED.done, "hook-2"]}, "not dead with cause"),
        ({"failures": [Attempt("hook-1", "error")]}, "never reaped"),
        ({"stored_orders": {1, 2, 3}}, "3 orders are stored, but 2 were accepted"),
        ({"mails": Counter({"mail-1": 1})}, "without an e-mail"),
        ({"deliveries": BALANCED.deliveries[:1]}, "without a delivery"),
        ({"mails": Counter({"mail-1": 2, "mail-2": 1})}, "repeated effect, although never reaped"),
        ({"failures": [Attempt("mail-2", "lapsed")]}, "more or fewer retries"),
    ],
)
def test_each_fault_is_named(changes, fault):
    """Whatever does not add up is said in words, with a job to look at."""
    faults = replace(BALANCED, **changes).faults()

    assert any(fault in sentence for sentence in faults), faults


def test_mails_are_counted_by_job(tmp_path):
    """One file may hold several messages, and those of other runs are not ours."""
    ours, other = "0193f4a0-0000-7000-8000-000000000001", "0193f4a0-0000-7000-8000-000000000002"
    message = "Subject: Hi\nMessage-ID: <{}@shop.example>\n\nThank you.\n" + "-" * 79 + "\n"
    (tmp_path / "a.log").write_text(message.format(ours) * 2)
    (tmp_path / "b.log").write_text(message.format(other) + message.format(ours))

    assert read_mails(tmp_path, {ours}) == {ours: 3}
