"""Time-ordered ids, so that new rows land at one end of the primary key and age can be read off an id."""

from __future__ import annotations

import os
import time
from uuid import UUID

_last_tick = 0


def new_id() -> UUID:
    """
    Return a UUID of version 7 (RFC 9562): 48 bits of milliseconds, 12 of a counter, 62 random.

    Ids made by one thread ascend, also within a millisecond: jobs stored in one statement share their
    time, and the id is what keeps them first in, first out. Two threads may draw the same tick; the random
    bits keep their ids apart.
    """
    global _last_tick  # noqa: PLW0603 - the order of ids is the process's
    tick = _last_tick = max(time.time_ns() // 1_000_000 << 12, _last_tick + 1)
    random = int.from_bytes(os.urandom(8)) & ((1 << 62) - 1)
    return UUID(int=(tick >> 12) << 80 | 0x7 << 76 | (tick & 0xFFF) << 64 | 0b10 << 62 | random)
