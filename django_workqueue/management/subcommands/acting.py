"""What the subcommands have in common that do something to chosen jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from ...lifecycle.listing import Page, Wanted, present
from ...lifecycle.operate import Refusal
from ...models.base import JobColumns
from ...store import store_for
from ...worker.process import EXIT_USAGE
from .. import arguments
from ..words import sentence
from .audit import CHANGE, add_author, author
from .base import Subcommand
from .filters import add_filters, wanted

SHOWN = 20
"""Ids that are told to people."""
BATCH = 100
"""Rows held in memory at a time."""

Outcome = str | Refusal
"""The word for what has become of a job, or why it was left as it is."""


class Acting(Subcommand):
    """Does one thing to jobs that are named by id or chosen by filters; a refusal does not stop the others."""

    model: ClassVar[type[JobColumns]]
    """Where it looks for them."""
    outcomes: ClassVar[Sequence[str]]
    """What may become of them, in one word each. The first is that of most."""
    words: ClassVar[Mapping[str, str]] = {}
    """What people are told instead of a word of the report."""
    log_text: ClassVar[str]
    log_flag: ClassVar[int] = CHANGE
    states: ClassVar[Sequence[str]] = ()
    has_groups: ClassVar[bool] = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which, how many, who and why, and whether to look only."""
        parser.add_argument("ids", nargs="*", type=arguments.job_id, metavar="ID", help="Ids, instead of filters.")
        add_filters(parser, states=self.states, has_groups=self.has_groups, limit=1000)
        parser.add_argument("--all", action="store_true", help="All of them, if neither ids nor filters are given.")
        parser.add_argument(
            "--dry-run", action="store_true", help="Change nothing, and tell what would become of each."
        )
        add_author(parser)

    def page(self, wanted: Wanted, **given: Any) -> Page:
        """Return some of those that match, latest first."""
        raise NotImplementedError(f"{type(self).__name__} must say where it looks.")

    def how(self, options: dict[str, Any]) -> list[str]:  # noqa: ARG002 - most ask for nothing beside
        """Check what is asked for beside, before anything is done, and return it in words."""
        return []

    def foresee(self, ids: Sequence[UUID], options: dict[str, Any], **given: Any) -> Iterator[tuple[UUID, Outcome]]:  # noqa: ARG002
        """Yield what would become of each. Nothing is changed."""
        there = present(self.model, ids, **given)
        for job_id in ids:
            yield job_id, self.outcomes[0] if job_id in there else Refusal(job_id, f"There is no {job_id} here.")

    def act(self, job_id: UUID, options: dict[str, Any], *, share: float, **given: Any) -> Outcome:
        """Do it to one. ``share``, from 0 up to 1, is its place among them."""
        raise NotImplementedError(f"{type(self).__name__} must say what it does.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Choose, and do it unless it is a dry run."""
        how = self.how(options)
        ids, more = self._chosen(options, database)
        given = {"tenant": options["tenant"], "database": database}
        outcomes = self.foresee(ids, options, **given) if options["dry_run"] else self._perform(ids, options, **given)
        told: dict[str, Any] = {word: [] for word in self.outcomes} | {"refused": []}
        try:
            for job_id, outcome in outcomes:
                if isinstance(outcome, Refusal):
                    told["refused"].append({"id": str(job_id), "problem": outcome.problem})
                else:
                    told[outcome].append(str(job_id))
        except KeyboardInterrupt:
            told["interrupted"] = True
        return {"interrupted": False, **told, "how": how, "more": more, "dry_run": options["dry_run"]}

    def _perform(self, ids: Sequence[UUID], options: dict[str, Any], **given: Any) -> Iterator[tuple[UUID, Outcome]]:
        """Do it, each in a transaction of its own together with the note of who did it and why."""
        store, scribe, text = store_for(given["database"]), author(options), self._logged(options)
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            rows = self.model._default_manager.using(store.alias).in_bulk(batch)
            for number, job_id in enumerate(batch, start):
                with store.transaction():
                    outcome = self.act(job_id, options, share=number / len(ids), **given)
                    if isinstance(outcome, str) and job_id in rows:
                        scribe.write(rows[job_id], self.log_flag, text)
                yield job_id, outcome

    def _logged(self, options: dict[str, Any]) -> str:
        note = [f"Note: {options['note']}."] if options.get("note") else []
        return " ".join([self.log_text, *map(sentence, self.how(options)), *note])

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say how many, how, and what was refused."""
        for word in self.outcomes:
            told = self.words.get(word, word)
            yield f"{f'To be {told}' if report['dry_run'] else told.capitalize()}: {len(report[word])}"
            yield from _some(f"    {pk}" for pk in report[word])
        yield from map(sentence, report["how"])
        if report["refused"]:
            yield f"Left as they are: {len(report['refused'])}"
            yield from _some(f"    {each['problem']}" for each in report["refused"])
        if report["interrupted"]:
            yield "Interrupted: the others are as they were."
        if report["more"]:
            yield "There may be more; the limit is reached."

    def has_failed(self, report: dict[str, Any]) -> bool:
        """Whether any was left as it is."""
        return bool(report["refused"]) or bool(report["interrupted"])

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
