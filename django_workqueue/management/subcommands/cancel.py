"""``manage.py workqueue cancel``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser

from ...domain.states import JobState
from ...lifecycle import listing, operate
from ...lifecycle.listing import Page, Wanted
from ...models import Job
from .acting import Acting


class Cancel(Acting):
    """Cancels live jobs: those that wait are over at once, those that run are asked to end."""

    done = "cancelled"
    words = {"requested": "asked to end"}
    states = JobState.values

    def add_arguments(self, parser: CommandParser) -> None:
        """Add whether those that do not heed the request are made to."""
        super().add_arguments(parser)
        parser.add_argument("--force", action="store_true", help="Interrupt what does not heed the request.")

    def page(self, wanted: Wanted, **given: Any) -> Page:
        """Return live jobs that match."""
        return listing.jobs(wanted, **given)

    def present(self, ids: Sequence[UUID], **given: Any) -> set[UUID]:
        """Return those that are live."""
        return listing.present(Job, ids, **given)

    def act(self, ids: Sequence[UUID], options: dict[str, Any], **given: Any) -> dict[str, Any]:
        """Cancel them, one transaction for each."""
        done = operate.cancel(ids, force=options["force"], **given)
        return {self.done: done.cancelled, "requested": done.requested, "refused": done.refused}
