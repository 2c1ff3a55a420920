"""``manage.py workqueue resolve-step``: what a person knows about a step of which nobody else does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from ...lifecycle import operate
from ...store import store_for
from ...worker.process import EXIT_USAGE
from .. import arguments
from .audit import CHANGE, add_author, author
from .base import Subcommand


class ResolveStep(Subcommand):
    """Says of a job's unknown step whether its effect happened."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which step, what is known of it, and who knows it."""
        parser.add_argument("id", type=arguments.job_id, metavar="ID", help="Id of the job.")
        parser.add_argument("step", metavar="STEP", help="Name of the step.")
        known = parser.add_mutually_exclusive_group(required=True)
        known.add_argument("--happened", action="store_true", help="It happened: it is not done again.")
        known.add_argument("--did-not-happen", action="store_true", help="It did not: the job does it anew.")
        parser.add_argument("--outcome", type=arguments.json_value, help="What it returned, in JSON (default: null).")
        parser.add_argument("--tenant", help="Name of the tenant; another tenant's job is not found.")
        parser.add_argument("--dry-run", action="store_true", help="Change nothing, and tell whether it could be.")
        add_author(parser)
        parser.add_argument("--note", help="Why: kept with who did it.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Resolve it, and say so."""
        if options["outcome"] is not None and not options["happened"]:
            raise CommandError("--outcome is for a step that happened.", returncode=EXIT_USAGE)
        which = (options["id"], options["step"])
        given: dict[str, Any] = {"tenant": options["tenant"], "database": database}
        report = {"id": str(options["id"]), "step": options["step"], "happened": options["happened"]}
        step = operate.resolvable_step(*which, happened=options["happened"], **given)
        if not options["dry_run"]:
            with store_for(database).transaction():
                operate.resolve_step(*which, happened=options["happened"], outcome=options["outcome"], **given)
                author(options).write(step, CHANGE, _told(options))
        return report | {"dry_run": options["dry_run"]}

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say what is on record now."""
        did = "happened" if report["happened"] else "did not happen"
        verb = "would be" if report["dry_run"] else "is"
        yield f"Step {report['step']!r} of job {report['id']} {verb} on record: it {did}."


def _told(options: dict[str, Any]) -> str:
    note = f" Note: {options['note']}." if options["note"] else ""
    return f"Resolved: it {'happened' if options['happened'] else 'did not happen'}.{note}"
