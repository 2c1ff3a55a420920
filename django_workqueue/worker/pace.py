"""How much to claim: what can be started now, and a little ahead when jobs are short."""

from __future__ import annotations

AHEAD_SECONDS = 0.1
"""Work that may wait for a slot, in seconds of each slot. More would be hoarded while other workers are idle."""
WORTH_SECONDS = 0.005
"""Work for which one more executor is woken."""
MOST_AHEAD = 400
BATCH = 200
"""Jobs of one claim at most."""
_WEIGHT = 0.1


class Pace:
    """A moving average of how long jobs run. Unknown at first: then, as with slow jobs, one is claimed a free slot."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._average: float | None = None

    def ran(self, *times: float) -> None:
        """Learn how many seconds each of some jobs ran, in order."""
        average = self._average
        for seconds in times:
            average = seconds if average is None else average + _WEIGHT * (seconds - average)
        self._average = average

    def misjudged(self) -> None:
        """Forget the average: claimed jobs waited too long for a slot."""
        self._average = None

    @property
    def ahead(self) -> int:
        """How many claimed jobs may wait for a slot."""
        if self._average is None or self._average >= AHEAD_SECONDS:
            return 0
        per_slot = AHEAD_SECONDS / max(self._average, 1e-6)
        return min(int(per_slot * self._slots), MOST_AHEAD)

    def executors(self, jobs: int) -> int:
        """Return how many executors so many jobs are worth: one for every few milliseconds of work."""
        if self._average is None:
            return jobs
        return 1 + int(jobs * self._average / WORTH_SECONDS)

    def claims(self, *, free: int, waiting: int) -> list[int]:
        """
        Return the sizes of the claims to make now.

        Slow jobs get a lease each, so that one that kills its worker lapses alone. Short ones come in a batch, claimed
        when half of what waits has gone, so that claims stay large.
        """
        ahead = self.ahead
        if not ahead:
            return [1] * free
        if waiting > ahead // 2 and not free:
            return []
        return [min(free + ahead - waiting, BATCH)]
