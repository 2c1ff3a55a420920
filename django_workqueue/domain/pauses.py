"""What is paused, as a worker sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pauses:
    """The queues, tenants and stored task paths of which nothing may be begun."""

    queues: frozenset[str] = frozenset()
    tenants: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()


NO_PAUSES = Pauses()


def all_paths(paused: Iterable[str], aliases: Mapping[str, str]) -> frozenset[str]:
    """
    Return every path under which a job of a paused task may be stored.

    A task that was renamed is one task: whoever stops it must not have to know what it was called before.
    """
    present = {aliases.get(path, path) for path in paused}
    return frozenset(present | {former for former, path in aliases.items() if path in present})
