"""``manage.py workqueue pause``, ``resume`` and ``pauses``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from ... import models
from ...exceptions import InvalidJobError
from ...lifecycle import operate
from ...store import store_for
from ...worker.process import EXIT_USAGE
from .audit import ADDITION, CHANGE, add_author, author, name_of_author
from .base import Subcommand

_KINDS = ("queue", "tenant", "task")


def _add_target(parser: CommandParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--queue", help="Name of the queue.")
    target.add_argument("--tenant", help="Name of the tenant, in all queues.")
    target.add_argument("--task", help="Dotted path of the task, in all queues and of all tenants.")
    parser.add_argument("--dry-run", action="store_true", help="Change nothing, and tell what would change.")
    add_author(parser)


def _named(options: dict[str, Any]) -> dict[str, Any]:
    named = {kind: options[kind] for kind in _KINDS if options[kind] is not None}
    try:
        operate.pausable(**named)
    except InvalidJobError as error:
        raise CommandError(str(error), returncode=EXIT_USAGE) from error
    return named


def _found(named: dict[str, Any], database: str | None) -> models.Pause | None:
    wanted = operate.pausable(**named)
    return next((each for each in operate.paused(database=database) if (each.kind, each.name) == wanted), None)


def _report(named: dict[str, Any], *, changed: bool, dry_run: bool = False) -> dict[str, Any]:
    [(kind, name)] = named.items()
    return {"kind": kind, "name": name, "changed": changed, "dry_run": dry_run}


def _line(report: dict[str, Any], done: str, vain: str) -> str:
    return f"{report['kind']} {report['name']!r} {done if report['changed'] else vain}."


class Pause(Subcommand):
    """Keeps workers from beginning jobs of a queue, of a tenant or of a task."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what to pause, and who does."""
        _add_target(parser)

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Pause it."""
        named = _named(options)
        if options["dry_run"]:
            return _report(named, changed=_found(named, database) is None, dry_run=True)
        with store_for(database).transaction():
            changed = operate.pause(**named, by=name_of_author(options), database=database)
            if changed and (pause := _found(named, database)):
                author(options).write(pause, ADDITION, "Paused.")
        return _report(named, changed=changed)

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say what changed."""
        yield _line(report, "would be paused" if report["dry_run"] else "is paused", "was paused already")


class Resume(Subcommand):
    """Lets workers begin jobs of a paused queue, tenant or task again."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what to resume."""
        _add_target(parser)

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Resume it."""
        named = _named(options)
        if options["dry_run"]:
            return _report(named, changed=_found(named, database) is not None, dry_run=True)
        pause = _found(named, database)
        changed = operate.resume(**named, database=database)
        if changed and pause:
            author(options).write(pause, CHANGE, "Resumed.")
        return _report(named, changed=changed)

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say what changed."""
        yield _line(report, "would be resumed" if report["dry_run"] else "is resumed", "was not paused")


class Pauses(Subcommand):
    """Shows what is paused, since when and by whom."""

    only_reads = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add nothing."""

    def run(self, *, database: str | None, **_others: Any) -> list[dict[str, Any]]:
        """Read the pauses."""
        return [
            {"kind": each.kind, "name": each.name, "paused_at": each.paused_at.isoformat(), "by": each.paused_by}
            for each in operate.paused(database=database)
        ]

    def lines(self, report: list[dict[str, Any]]) -> Iterator[str]:
        """Say one line for each."""
        for each in report:
            yield f"{each['kind']:<6}  {each['name']!r} by {each['by'] or '?'} since {each['paused_at']}"
        if not report:
            yield "Nothing is paused."
