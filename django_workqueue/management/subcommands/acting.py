"""What the subcommands have in common that do something to chosen jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from ...lifecycle.listing import Page, Wanted
from ...lifecycle.operate import Refusal
from ...worker.process import EXIT_USAGE
from .. import arguments
from .base import Subcommand
from .filters import add_filters, wanted

SHOWN = 20
"""Ids that are told to people."""


class Acting(Subcommand):
    """Does one thing to jobs that are named by id or chosen by filters; a refusal does not stop the others."""

    done: ClassVar[str]
    """What has become of them, in one word."""
    words: ClassVar[Mapping[str, str]] = {}
    """What people are told instead of a word of the report."""
    states: ClassVar[Sequence[str]] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which, how many, and whether to look only."""
        parser.add_argument("ids", nargs="*", type=arguments.job_id, metavar="ID", help="Ids, instead of filters.")
        add_filters(parser, states=self.states, limit=1000)
        parser.add_argument("--all", action="store_true", help="All of them, if neither ids nor filters are given.")
        parser.add_argument("--dry-run", action="store_true", help="Change nothing, and tell which are meant.")

    def page(self, wanted: Wanted, **given: Any) -> Page:
        """Return some of those that match, latest first."""
        raise NotImplementedError(f"{type(self).__name__} must say where it looks.")

    def present(self, ids: Sequence[UUID], **given: Any) -> set[UUID]:
        """Return those of ``ids`` that are there."""
        raise NotImplementedError(f"{type(self).__name__} must say where it looks.")

    def act(self, ids: Sequence[UUID], options: dict[str, Any], **given: Any) -> dict[str, list[UUID] | list[Refusal]]:
        """Do it, and return ids by what became of them; those that were left as they are under ``refused``."""
        raise NotImplementedError(f"{type(self).__name__} must say what it does.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Choose, and do it unless it is a dry run."""
        ids, more = self._chosen(options, database)
        given = {"tenant": options["tenant"], "database": database}
        if options["dry_run"]:
            there = self.present(ids, **given)
            done: dict[str, Any] = {self.done: [pk for pk in ids if pk in there]}
            done["refused"] = [Refusal(pk, f"There is no such job here: {pk}.") for pk in ids if pk not in there]
        else:
            done = self.act(ids, options, **given)
        refused = [{"id": str(each.job_id), "problem": each.problem} for each in done.pop("refused", [])]
        told = {word: [str(pk) for pk in found] for word, found in done.items()}
        return {**told, "refused": refused, "more": more, "dry_run": options["dry_run"]}

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say how many, and what was refused."""
        for word, ids in report.items():
            if isinstance(ids, list) and word != "refused":
                yield f"{'To be ' if report['dry_run'] else ''}{self.words.get(word, word)}: {len(ids)}"
                yield from _some(f"    {pk}" for pk in ids)
        if report["refused"]:
            yield f"Left as they are: {len(report['refused'])}"
            yield from _some(f"    {each['problem']}" for each in report["refused"])
        if report["more"]:
            yield "There may be more; the limit is reached."

    def has_failed(self, report: dict[str, Any]) -> bool:
        """Whether any was left as it is."""
        return bool(report["refused"])

    def _chosen(self, options: dict[str, Any], database: str | None) -> tuple[list[UUID], bool]:
        """Return the ids that are meant, oldest first where filters choose them, and whether there may be more."""
        ids, filters = list(dict.fromkeys(options["ids"])), wanted(options)
        if ids and (options["all"] or filters != Wanted(tenant=options["tenant"])):
            raise CommandError("Name ids or filters, not both.", returncode=EXIT_USAGE)
        if ids:
            return ids, False
        if not filters.is_narrow and not options["all"]:
            raise CommandError("Name ids or filters, or --all.", returncode=EXIT_USAGE)
        return self._matching(filters, options["limit"], database)

    def _matching(self, filters: Wanted, limit: int, database: str | None) -> tuple[list[UUID], bool]:
        ids: list[UUID] = []
        after = None
        while len(ids) < limit:
            page = self.page(filters, after=after, limit=limit - len(ids), database=database)
            ids += [row.pk for row in page.rows]
            after = page.next
            if after is None:
                break
        return ids[::-1], after is not None


def _some(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == SHOWN:
            yield "    ..."
            return
        yield line
