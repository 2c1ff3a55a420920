"""``manage.py workqueue dead``, ``requeue`` and ``discard``: what stopped for good, and what is decided about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser

from ...lifecycle import listing, operate
from ...lifecycle.enqueue import MAX_ATTEMPTS
from ...lifecycle.listing import Page, Wanted
from ...models import DeadLetter
from .. import arguments
from .acting import Acting
from .base import Subcommand
from .descriptions import lines_of_page, of_page
from .filters import add_filters, wanted


class Dead(Subcommand):
    """Lists dead letters, those that died last first."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is looked for, and where to begin."""
        add_filters(parser, limit=50)
        parser.add_argument("--after", help="Begin behind the place that an earlier list ended with.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Read one page."""
        given = {"after": options["after"], "limit": options["limit"], "database": database}
        return of_page(listing.dead(wanted(options), **given))

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say two or three lines for each."""
        return lines_of_page(report, "There is no such dead letter.")


class _ActingOnDead(Acting):
    """Does one thing to dead letters."""

    def page(self, wanted: Wanted, **given: Any) -> Page:
        """Return dead letters that match."""
        return listing.dead(wanted, **given)

    def present(self, ids: Sequence[UUID], **given: Any) -> set[UUID]:
        """Return those that are dead letters."""
        return listing.present(DeadLetter, ids, **given)


class Requeue(_ActingOnDead):
    """Puts dead letters back to ready."""

    done = "requeued"

    def add_arguments(self, parser: CommandParser) -> None:
        """Add how many further attempts each is given."""
        super().add_arguments(parser)
        parser.add_argument(
            "--attempts",
            type=arguments.whole(1, MAX_ATTEMPTS),
            help="How many further attempts each is given (default: MAX_ATTEMPTS of its queue).",
        )

    def act(self, ids: Sequence[UUID], options: dict[str, Any], **given: Any) -> dict[str, Any]:
        """Requeue them, one transaction for each."""
        done = operate.requeue(ids, attempts=options["attempts"], **given)
        return {self.done: done.job_ids, "refused": done.refused}


class Discard(_ActingOnDead):
    """Deletes dead letters with their failures, for good."""

    done = "discarded"

    def act(self, ids: Sequence[UUID], options: dict[str, Any], **given: Any) -> dict[str, Any]:  # noqa: ARG002
        """Discard them, one transaction for each."""
        gone = operate.discard(ids, **given)
        there = set(gone)
        refused = [operate.Refusal(pk, f"There is no dead letter {pk} here.") for pk in ids if pk not in there]
        return {self.done: gone, "refused": refused}
