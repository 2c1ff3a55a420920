"""What a trial is given: the database, and how large and long everything is to be."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from .children import migrate
from .database import Database, plain_environment, scratch_database
from .fleet import Fleet

#: How the lines begin that a measured process prints when all is well.
EXPECTED = ("Worker ", "The floor listens.")


class Bench:
    """Opens what is used first when it is used first, and closes it at the end of the block."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self.round = 0
        """The number of the round, from 0: what goes first in one goes last in the next."""
        self.complaints: list[str] = []
        """What measured processes printed besides what was expected: figures from then are another story's."""
        self._open = ExitStack()

    @cached_property
    def database(self) -> Database:
        """The PostgreSQL database, with the tables of the test project."""
        database = self._open.enter_context(scratch_database())
        migrate({**plain_environment(), **database.environment})
        return database

    @property
    def environment(self) -> dict[str, str]:
        """The environment of processes that work on it."""
        return {**plain_environment(), **self.database.environment}

    @property
    def uses_postgresql(self) -> bool:
        """Whether the database has been opened."""
        return "database" in vars(self)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield an empty folder for a trial's own files."""
        with tempfile.TemporaryDirectory(prefix="dwq-bench-") as name:
            yield Path(name)

    def listen_to(self, fleet: Fleet) -> None:
        """Note what the processes of ``fleet`` complained about."""
        for worker in fleet.workers:
            lines = worker.log.splitlines()
            self.complaints += [line for line in lines if line and not line.startswith(EXPECTED)]

    def sized(self, count: float, least: int = 200) -> int:
        """Return ``count`` at this scale, but no less than makes sense."""
        return max(least, round(count * self.scale))

    def lasting(self, seconds: float, least: float = 2.0) -> float:
        """Return a duration at this scale."""
        return max(least, seconds * self.scale)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
