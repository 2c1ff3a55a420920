"""One attempt at a job in the calling thread, as a slot of a worker makes it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from dataclasses import dataclass

from ..domain.contract import AnyTaskResult, task_backends
from ..domain.link import JobLink
from ..domain.outcomes import ClaimedJob, Settlement
from ..exceptions import JobStoppedError
from ..lifecycle.run import Call, prepare, run
from ..store import Store
from .shield import shielded

# What a worker takes for a failed attempt as well. Everything else beside Exception, such as KeyboardInterrupt and the
# outcomes of pytest, is meant for whoever runs the tests.
FAILURES = (Exception, SystemExit, asyncio.CancelledError, JobStoppedError)


@dataclass(slots=True)
class Attempted:
    """What came of an attempt, and what its body raised, if anything."""

    settlement: Settlement
    error: BaseException | None = None

    @property
    def interrupt(self) -> BaseException | None:
        """What must not be swallowed, if that is how the body ended."""
        return None if isinstance(self.error, FAILURES) else self.error


def attempt(
    job: ClaimedJob,
    store: Store,
    worker: str,
    *,
    commits: bool,
    load_result: Callable[[], AnyTaskResult] | None = None,
    link_to: Callable[[ClaimedJob], JobLink] | None = None,
) -> Attempted:
    """Run ``job`` in a new context, shielded. ``commits`` says whether its end counts as a commit; see shielded()."""
    raised: list[BaseException] = []

    def start() -> Settlement:
        call = prepare(job, store, worker, load_result=load_result, link_to=link_to)
        if not isinstance(call, Call):
            return call
        return run(call, within=lambda: shielded(commits=commits), on_error=raised.append)

    settlement = _new_context().run(start)
    return Attempted(settlement, *raised)


def _new_context() -> contextvars.Context:
    """
    Return an empty context, as each job of a worker gets one, without the test's language, time zone and variables.

    The backends of ``TASKS`` are in it: each context would make its own, and what the body enqueues on one that
    remembers jobs would be lost to the test.
    """
    context = contextvars.Context()
    for alias in task_backends:
        context.run(task_backends.__setitem__, alias, task_backends[alias])
    return context
