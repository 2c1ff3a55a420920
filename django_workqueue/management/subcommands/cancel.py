"""``manage.py workqueue cancel``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser

from ...domain.states import JobState
from ...lifecycle import listing, operate
from ...lifecycle.listing import Page, Wanted
from ...models import Job
from .acting import Acting, Outcome


class Cancel(Acting):
    """Cancels live jobs: those that wait are over at once, those that run are asked to end."""

    model = Job
    outcomes = ("cancelled", "requested")
    words = {"requested": "asked to end"}
    log_text = "Cancelled."
    states = JobState.values

    def add_arguments(self, parser: CommandParser) -> None:
        """Add whether those that do not heed the request are made to."""
        super().add_arguments(parser)
        parser.add_argument("--force", action="store_true", help="Interrupt what does not heed the request.")

    def how(self, options: dict[str, Any]) -> list[str]:
        """Say whether it is by force."""
        return ["by force"] if options["force"] else []

    def page(self, wanted: Wanted, **given: Any) -> Page:
        """Return live jobs that match."""
        return listing.jobs(wanted, **given)

    def foresee(self, ids: Sequence[UUID], options: dict[str, Any], **given: Any) -> Iterator[tuple[UUID, Outcome]]:
        """Yield which would be over at once, and which would be asked to end."""
        running = listing.running(ids, database=given["database"])
        for job_id, outcome in super().foresee(ids, options, **given):
            yield job_id, "requested" if outcome == "cancelled" and job_id in running else outcome

    def act(self, job_id: UUID, options: dict[str, Any], *, share: float, **given: Any) -> Outcome:  # noqa: ARG002
        """Cancel one."""
        done = operate.cancel([job_id], force=options["force"], **given)
        return next(iter(done.refused), "cancelled" if done.cancelled else "requested")
