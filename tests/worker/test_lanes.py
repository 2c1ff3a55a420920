"""Which queues and lanes the dispatcher looks at next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_workqueue.domain.limits import Hold
from django_workqueue.domain.pauses import Pauses
from django_workqueue.domain.rotation import FIRST_RANK, LAST_RANK, Segment
from django_workqueue.worker import lanes as module
from django_workqueue.worker.lanes import FORGET_SECONDS, LaneBook
from django_workqueue.worker.options import WorkerOptions

from .jobs import job

WHOLE = (Segment(FIRST_RANK, None, LAST_RANK),)


class FakeStore:
    """Ready lanes by queue, and pauses."""

    def __init__(self, **queues) -> None:
        self.queues = {name: sorted(tenants) for name, tenants in queues.items()}
        self.paused: set[str] = set()
        self.paused_tenants: set[str] = set()
        self.looks = 0

    def ready_queues(self):
        """Return the queues with work."""
        return sorted(self.queues)

    def lanes(self, queue, *, after=None, limit=1000):
        """Return lanes behind ``after``."""
        return [tenant for tenant in self.queues[queue] if after is None or tenant > after][:limit]

    def pauses(self):
        """Return what is paused, and count the look."""
        self.looks += 1
        return Pauses(queues=frozenset(self.paused), tenants=frozenset(self.paused_tenants))


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Let the test set the monotonic clock."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def book(*queues: str, **options) -> LaneBook:
    """Return the book of a worker that serves these queues."""
    return LaneBook(WorkerOptions(queues=queues or ("*",), **options))


def walked(store: FakeStore, *queues: str, **options) -> LaneBook:
    """Return a book that has looked once."""
    made = book(*queues, **options)
    made.walk(store)
    return made


def names(made: LaneBook) -> list[str]:
    """Return the queues in the order in which they are to be asked."""
    return [queue for queue, _ in made.turns()]


# -- walks -------------------------------------------------------------------------------------------------------------


def test_walk_finds_the_lanes_of_every_queue_that_is_served():
    """And of no other."""
    store = FakeStore(mail=["a", "b"], default=[""], spam=["x"])

    made = walked(store, "*", exclude_queues=("sp*",))

    assert sorted(names(made)) == ["default", "mail"]
    assert len(made) == 3


def test_patterns_decide_what_is_served():
    """By name or by shell pattern."""
    store = FakeStore(mail=["a"], mailing=["a"], default=["a"])

    assert sorted(names(walked(store, "mail*"))) == ["mail", "mailing"]
    assert names(walked(store, "mail")) == ["mail"]


def test_very_many_lanes_are_learned_in_parts_and_none_is_left_out(monkeypatch):
    """The first ones must not starve those behind them, on a database without notifications either."""
    monkeypatch.setattr(module, "LANES_PER_WALK", 10)
    store = FakeStore(default=[f"t{number:02}" for number in range(25)])
    made = book()
    seen = []
    for _ in range(4):
        made.walk(store)
        seen.append(len(made))

    assert seen[0] == 10
    assert seen[1] == 20
    assert max(seen) == 25


def test_walk_begins_anew_when_it_has_reached_the_end(monkeypatch):
    """A lane at the beginning may have new work."""
    monkeypatch.setattr(module, "LANES_PER_WALK", 3)
    store = FakeStore(default=["b", "c", "d", "e"])
    made = walked(store)
    store.queues["default"] = ["a", "b", "c", "d", "e"]
    for _ in range(3):
        made.walk(store)

    assert len(made) == 5


# -- pauses ------------------------------------------------------------------------------------------------------------


def test_paused_queue_is_not_asked():
    """Nor does its work keep a burst from ending."""
    store = FakeStore(mail=["a"], default=["a"])
    made = walked(store)
    store.paused = {"mail"}
    store_time_passes(made, store)

    assert names(made) == ["default"]
    assert len(made) == 1


def store_time_passes(made: LaneBook, store: FakeStore) -> None:
    """Let the next look at the pauses be due, and take it."""
    made._pauses_seen -= 2
    made.refresh_pauses(store)


def test_resumed_queue_is_asked_again():
    """Its lanes were not forgotten."""
    store = FakeStore(mail=["a"])
    made = walked(store)
    store.paused = {"mail"}
    store_time_passes(made, store)
    store.paused = set()
    store_time_passes(made, store)

    assert names(made) == ["mail"]


def test_lane_of_a_paused_tenant_does_not_count():
    """A queue of which only such lanes are known is not asked, and comes back as it was."""
    store = FakeStore(mail=["acme"], default=["acme", "beta"])
    made = walked(store)
    store.paused_tenants = {"acme", "somebody else"}
    store_time_passes(made, store)
    assert (names(made), len(made)) == (["default"], 1)

    store.paused_tenants = set()
    store_time_passes(made, store)
    assert (sorted(names(made)), len(made)) == (["default", "mail"], 3)


# -- queues at their limit ---------------------------------------------------------------------------------------------

SOFT, FIRM = Hold(timedelta(seconds=5), firm=False), Hold(timedelta(seconds=5), firm=True)


@pytest.mark.parametrize("hold", [SOFT, FIRM])
def test_queue_at_its_limit_is_asked_again_in_time(hold, clock):
    """Its lanes are kept, and the dispatcher knows when to wake; others go on."""
    made = walked(FakeStore(mail=["a"], default=["a"]))
    made.hold("mail", hold)
    assert (names(made), len(made), made.holds_back) == (["default"], 1, True)
    assert made.next_look() == pytest.approx(5)

    clock[0] += 5
    made.read_news()
    assert (sorted(names(made)), made.holds_back, made.next_look()) == (["default", "mail"], False, None)


@pytest.mark.parametrize(("hold", "asked"), [(SOFT, ["mail"]), (FIRM, [])])
def test_what_ends_is_worth_another_look(hold, asked):
    """A slot may be free again; a rate's window ends with time alone."""
    for happens in (
        lambda made: made.let_go(),
        lambda made: made.news.returned.append(("mail", "a")),
        lambda made: made.news.lanes.append(("mail", "new tenant")),
    ):
        made = walked(FakeStore(mail=["a"]))
        made.hold("mail", hold)
        happens(made)
        made.read_news()
        assert names(made) == asked


def test_more_work_of_a_full_lane_is_no_news():
    """Else each enqueue of a tenant at its limit would cost a vain claim."""
    made = walked(FakeStore(mail=["a"]))
    made.hold("mail", SOFT)
    made.news.lanes.append(("mail", "a"))
    made.read_news()

    assert names(made) == []


def test_pauses_are_looked_at_once_a_second(clock):
    """Not at every claim."""
    store = FakeStore(mail=["a"])
    made = book()
    for _ in range(5):
        made.refresh_pauses(store)
    clock[0] += 1.0
    made.refresh_pauses(store)

    assert store.looks == 2


# -- turns -------------------------------------------------------------------------------------------------------------


def test_queues_take_turns():
    """One that was served goes behind the others."""
    made = walked(FakeStore(a=["x"], b=["x"], c=["x"]))

    order = []
    for _ in range(6):
        order.append(names(made)[0])
        made.served(order[-1])

    assert order == ["a", "b", "c", "a", "b", "c"]


def test_strict_order_follows_the_command_line():
    """A queue is asked only after those listed before it, patterns included (rails/solid_queue#360)."""
    made = walked(
        FakeStore(low=["x"], urgent=["x"], mail_a=["x"], mail_b=["x"]), "urgent", "mail_*", "low", strict_order=True
    )

    for _ in range(3):
        assert names(made) == ["urgent", "mail_a", "mail_b", "low"]
        made.served("urgent")


def test_queue_without_lanes_is_not_asked():
    """Its last lane was found empty."""
    made = walked(FakeStore(mail=["a"]))
    [(_, rotation)] = made.turns()
    rotation.settle(rotation.turn(1), [], full=False)

    assert names(made) == []
    assert len(made) == 0


# -- news --------------------------------------------------------------------------------------------------------------


def test_lane_that_was_heard_of_is_looked_at_twice(clock):
    """At once, and after the senders' silence: what was suppressed in it is found without a message of its own."""
    made = book()
    made.news.lanes.append(("mail", "a"))
    made.read_news()
    assert names(made) == ["mail"]
    assert made.next_look() > 0
    [(_, rotation)] = made.turns()
    rotation.settle(rotation.turn(1), [], full=False)
    assert names(made) == []

    clock[0] += made.next_look() + 0.001
    made.read_news()

    assert names(made) == ["mail"]
    assert made.next_look() is None


def test_news_of_queues_that_are_not_served_are_ignored():
    """They are for others."""
    made = book("mail")
    made.news.lanes.append(("default", "a"))
    made.news.returned.append(("default", "a"))
    made.read_news()

    assert len(made) == 0


def marked(*, tenant: str = "a") -> LaneBook:
    """Return a book with one lane that has a mark."""
    made = walked(FakeStore(mail=[tenant]))
    [(_, rotation)] = made.turns()
    rotation.settle(rotation.turn(1), [job(queue="mail", tenant=tenant)], full=True)
    return made


def segments(made: LaneBook):
    """Return the stretches that the next claim of the only lane looks at."""
    [(_, rotation)] = made.turns()
    return rotation.turn(1)[0].segments


def test_jobs_that_came_back_are_not_hidden_by_a_mark():
    """They may lie before it."""
    made = marked()
    assert segments(made) != WHOLE
    made.news.returned.append(("mail", "a"))
    made.read_news()

    assert segments(made) == WHOLE


def test_marks_are_forgotten_every_few_seconds(clock):
    """Rows that were committed long after their stamp are found by then."""
    made = marked()
    made.read_news()
    assert segments(made) != WHOLE
    clock[0] += FORGET_SECONDS * 1.21
    made.read_news()

    assert segments(made) == WHOLE


def test_all_marks_can_be_forgotten_at_once():
    """After an error nothing that was remembered is trusted."""
    made = marked()
    made.forget_marks()

    assert segments(made) == WHOLE
