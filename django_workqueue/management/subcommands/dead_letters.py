"""``manage.py workqueue requeue``, ``acknowledge`` and ``discard``: what people decide about dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from ...exceptions import DuplicateJobError, JobNotFoundError
from ...lifecycle import listing, operate
from ...lifecycle.dead_letters import check_changes, check_note, other_arguments
from ...lifecycle.enqueue import MAX_ATTEMPTS
from ...lifecycle.listing import Page, Wanted
from ...models import DeadLetter
from ...worker.process import EXIT_USAGE
from .. import arguments
from ..words import span
from .acting import Acting, Outcome
from .audit import DELETION, name_of_author


class _ActingOnDead(Acting):
    """Does one thing to dead letters."""

    model = DeadLetter
    has_groups = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add why."""
        super().add_arguments(parser)
        parser.add_argument("--note", help="Why: kept with who did it.")

    def page(self, wanted: Wanted, **given: Any) -> Page:
        """Return dead letters that match."""
        return listing.dead(wanted, **given)

    def how(self, options: dict[str, Any]) -> list[str]:
        """Check who does it and why."""
        check_note(name_of_author(options), options["note"] or "")
        return []


class Requeue(_ActingOnDead):
    """Puts dead letters back to ready: as they were, or changed."""

    outcomes = ("requeued",)
    log_text = "Requeued."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add how they come back."""
        super().add_arguments(parser)
        parser.add_argument(
            "--attempts",
            type=arguments.whole(1, MAX_ATTEMPTS),
            help="How many further attempts each is given (default: MAX_ATTEMPTS of its queue).",
        )
        parser.add_argument("--to-queue", help="Name of the queue that they shall be in (default: where they were).")
        parser.add_argument("--spread", type=arguments.duration, help="Make them due one after the other: 10m, 2h.")
        for name, kind in (("args", list), ("kwargs", dict)):
            parser.add_argument(
                f"--{name}",
                dest=f"new_{name}",
                type=arguments.json_of(kind),
                help=f"Other {'positional' if kind is list else 'keyword'} arguments, in JSON, for one ID.",
            )

    def how(self, options: dict[str, Any]) -> list[str]:
        """Check, and say what is changed."""
        super().how(options)
        changes = check_changes(options["attempts"], options["to_queue"], spread=options["spread"])
        others = _other_arguments(options)
        if others and len(set(options["ids"])) != 1:
            raise CommandError("--args and --kwargs are for one job. Name its id.", returncode=EXIT_USAGE)
        told = {
            "with other arguments": bool(others),
            f"with {options['attempts']} further attempts": options["attempts"] is not None,
            f"into the queue {changes.get('queue')!r}": "queue" in changes,
            f"spread over {_span(options)}": bool(options["spread"]),
        }
        return [words for words, is_asked in told.items() if is_asked]

    def foresee(self, ids: Sequence[UUID], options: dict[str, Any], **given: Any) -> Iterator[tuple[UUID, Outcome]]:
        """Yield which would come back, and which are not there or clash."""
        refused = {each.job_id: each for each in operate.irrecoverable(ids, queue=options["to_queue"], **given)}
        for job_id in ids:
            if job_id not in refused and (others := _other_arguments(options)):
                other_arguments(job_id, **others, **given)
            yield job_id, refused.get(job_id, self.outcomes[0])

    def act(self, job_id: UUID, options: dict[str, Any], *, share: float, **given: Any) -> Outcome:
        """Requeue one."""
        changes: dict[str, Any] = {"attempts": options["attempts"], "queue": options["to_queue"]}
        changes["delay"] = options["spread"] and options["spread"] * share
        if not (others := _other_arguments(options)):
            return next(iter(operate.requeue([job_id], **changes, **given).refused), self.outcomes[0])
        try:
            operate.amend(job_id, **others, **changes, **given)
        except (JobNotFoundError, DuplicateJobError) as error:
            return operate.Refusal(job_id, str(error))
        return self.outcomes[0]


class Acknowledge(_ActingOnDead):
    """Notes on dead letters who has seen them; health counts them no more."""

    outcomes = ("acknowledged",)
    log_text = "Acknowledged."

    def act(self, job_id: UUID, options: dict[str, Any], *, share: float, **given: Any) -> Outcome:  # noqa: ARG002
        """Acknowledge one."""
        seen = operate.acknowledge([job_id], by=name_of_author(options), note=options["note"] or "", **given)
        return self.outcomes[0] if seen else _missing(job_id)


class Discard(_ActingOnDead):
    """Deletes dead letters with their failures, for good."""

    outcomes = ("discarded",)
    log_text = "Discarded."
    log_flag = DELETION

    def act(self, job_id: UUID, options: dict[str, Any], *, share: float, **given: Any) -> Outcome:  # noqa: ARG002
        """Discard one."""
        return self.outcomes[0] if operate.discard([job_id], **given) else _missing(job_id)


def _missing(job_id: UUID) -> operate.Refusal:
    return operate.Refusal(job_id, f"There is no dead letter {job_id} here.")


def _other_arguments(options: dict[str, Any]) -> dict[str, Any]:
    given = {name: options[f"new_{name}"] for name in ("args", "kwargs")}
    return {name: value for name, value in given.items() if value is not None}


def _span(options: dict[str, Any]) -> str:
    return span((options["spread"] or timedelta()).total_seconds())
