"""When a schedule fires: cron lines, intervals, time zones, and what becomes of missed firings. No clock, no rows."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ..exceptions import LONGEST, InvalidScheduleError
from .states import CatchUp, Overlap

MOST_CAUGHT_UP = 1000
"""Missed firings that ``catch_up="all"`` makes up for at once: the last ones."""
GRACE = timedelta(minutes=1)
"""How late a firing may be and still not be missed."""
SHORTEST = timedelta(seconds=1)
CRON_FIELDS = 5

_TICK = timedelta(microseconds=1)
_CRON_STEP = timedelta(minutes=1)
# Any moment will do to see whether a line ever fires: cronsim looks half a century ahead of it.
_PROBE = datetime(2000, 1, 1, tzinfo=UTC)
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """
    When something is to happen again and again. All moments have a zone; those returned are in UTC.

    A cron line is read in its zone, as Debian's cron does: a fixed local time fires once a day, at the end of the gap
    where a change of clocks leaves it out, and at its first occurrence where the hour comes twice. A line whose
    minute or hour begins with a star runs through both hours. An interval is a length of real time, counted from
    ``starts_at``, or else from ``anchor``, and does not drift.
    """

    cron: str = ""
    interval: timedelta | None = None
    zone: str = "UTC"
    starts_at: datetime | None = None
    """No firing is before it. An interval's first one is at it."""
    ends_at: datetime | None = None
    """No firing is after it."""
    anchor: datetime = _PROBE

    def check(self) -> None:
        """Raise InvalidScheduleError, which names what is wrong, unless this can be followed and fires at all."""
        if bool(self.cron) == (self.interval is not None):
            raise InvalidScheduleError(
                f"cron is {self.cron!r} and interval is {self.interval!r}. Give exactly one of the two."
            )
        _zone(self.zone)
        if self.cron:
            _check_cron(self.cron, self.zone)
        elif not isinstance(self.interval, timedelta) or not SHORTEST <= self.interval <= LONGEST:
            raise InvalidScheduleError(f"interval is {self.interval!r}. Pass a timedelta from a second to a century.")
        if self.starts_at and self.ends_at and self.ends_at <= self.starts_at:
            raise InvalidScheduleError(f"ends_at is {self.ends_at}, not after starts_at, {self.starts_at}. Move one.")

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first firing that is strictly later than ``moment``; None when there is none any more."""
        return next(self.firings_after(moment), None)

    def firings_after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the firings that are strictly later than ``moment``, in order."""
        if self.starts_at is not None:
            moment = max(moment, self.starts_at - _TICK)
        for firing in self._by_cron(moment) if self.cron else self._by_interval(moment):
            if self.ends_at is not None and firing > self.ends_at:
                return
            yield firing

    def last_firings(self, first: datetime, until: datetime, most: int) -> list[datetime]:
        """Return the last ``most`` of the firings from ``first`` to ``until``, both included, in order."""
        # In windows that double, from the end: a year of missed minutes need not be counted through.
        window = most * (self.interval or _CRON_STEP)
        while True:
            since = max(first, until - window)
            found = deque(self._between(since, until), maxlen=most)
            if len(found) == most or since == first:
                return list(found)
            window *= 2

    def words(self) -> str:
        """Return when it fires, in words: "At 03:00 every day (Europe/Berlin)", "Every 5 minutes"."""
        if self.interval is not None:
            return f"Every {_span(self.interval)}"
        return f"{CronSim(self.cron, _PROBE).explain()} ({self.zone})"

    def local(self, moment: datetime) -> datetime:
        """Return ``moment`` in this timing's zone. Raises InvalidScheduleError."""
        return moment.astimezone(_zone(self.zone))

    def digest(self) -> str:
        """Return what is the same for equal timings alone: short, and stable from process to process."""
        return digest_of(self.cron, self.interval, self.zone, self.starts_at, self.ends_at)

    def _between(self, since: datetime, until: datetime) -> Iterator[datetime]:
        for firing in self.firings_after(since - _TICK):
            if firing > until:
                return
            yield firing

    def _by_cron(self, moment: datetime) -> Iterator[datetime]:
        last = moment
        # By UTC: two moments of one zone compare by their wall clocks, as if no hour ever came twice.
        for local in CronSim(self.cron, moment.astimezone(ZoneInfo(self.zone))):
            firing = local.astimezone(UTC)
            if firing > last:
                yield firing
                last = firing

    def _by_interval(self, moment: datetime) -> Iterator[datetime]:
        interval = self.interval or LONGEST
        first = (self.starts_at or self.anchor.replace(microsecond=0) + interval).astimezone(UTC)
        firing = first + max(0, (moment - first) // interval + 1) * interval
        while True:
            yield firing
            try:
                firing += interval
            except OverflowError:
                return


def check_policies(catch_up: Any, overlap: Any) -> None:
    """Raise InvalidScheduleError unless the two are words of ours that go together."""
    for name, value, words in (("catch_up", catch_up, CatchUp.values), ("overlap", overlap, Overlap.values)):
        if value not in words:
            raise InvalidScheduleError(f"{name} is {value!r}. Use one of: {', '.join(words)}.")
    if catch_up == CatchUp.ALL and overlap == Overlap.SKIP:
        raise InvalidScheduleError(
            "catch_up is 'all' and overlap is 'skip', which would drop all but the first of the missed firings. "
            "Set overlap to 'allow'."
        )


def due_firings(timing: Timing, catch_up: str, first: datetime, now: datetime) -> list[datetime]:
    """
    Return the firings from ``first`` to ``now`` that are to be carried out now, oldest first.

    ``first`` counts as one where none lies between: somebody has set the time by hand.
    """
    most = MOST_CAUGHT_UP if catch_up == CatchUp.ALL else 1
    firings = timing.last_firings(first, now, most) or [first]
    if catch_up == CatchUp.SKIP:
        return [firing for firing in firings if now - firing <= GRACE]
    return firings


def next_few(timing: Timing, moment: datetime, count: int) -> list[datetime]:
    """Return the next ``count`` firings after ``moment``, in the timing's own zone."""
    return [timing.local(firing) for firing in islice(timing.firings_after(moment), count)]


def digest_of(*parts: Any) -> str:
    """Return 32 characters that are the same for equal parts alone."""
    told = [part.astimezone(UTC) if isinstance(part, datetime) else part for part in parts]
    return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()


def _zone(zone: Any) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except Exception as error:  # a key may be refused by the library, by the file system or by an encoder
        raise InvalidScheduleError(f"zone is {zone!r}, which no time zone is called. Try 'Europe/Berlin'.") from error


def _check_cron(cron: Any, zone: str) -> None:
    if not isinstance(cron, str) or len(cron.split()) != CRON_FIELDS:
        raise InvalidScheduleError(
            f"cron is {cron!r}. It has five fields: minute, hour, day of the month, month, day of the week."
        )
    try:
        next(CronSim(cron, _PROBE.astimezone(ZoneInfo(zone))))
    except StopIteration:
        raise InvalidScheduleError(f"cron is {cron!r}, which never fires. Mend its day and month.") from None
    except Exception as error:  # whatever the parser stumbles over, the line is at fault
        raise InvalidScheduleError(
            f"cron is {cron!r}, which cannot be followed: {str(error) or 'see above'}."
        ) from error


def _span(interval: timedelta) -> str:
    """Return a length of time: "5 minutes", "1 day 2 hours"."""
    rest, told = interval.total_seconds(), []
    for name, seconds in _UNITS:
        count, rest = divmod(rest, seconds) if name != "second" else (rest, 0.0)
        if count:
            told.append(f"{count:g} {name}{'' if count == 1 else 's'}")
    return " ".join(told)
