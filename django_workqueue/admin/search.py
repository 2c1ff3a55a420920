"""What the search box of the lists of jobs understands: ``id:``, ``key:``, ``task:`` ..., or a bare word."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.text import smart_split, unescape_string_literal

from ..store import Store, store_for

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\.?")


class Reach(Enum):
    """How many rows a condition makes the database look at."""

    FEW = "few"
    """An index leads to the few that match."""
    PAGE = "page"
    """About as many as a page shows: most rows match, or an index holds those that do."""
    ALL = "all"
    """Perhaps every row of the table."""


class Word(NamedTuple):
    """A qualifier of the search box: the lookup that it stands for, and what that costs."""

    lookup: str
    reach: Reach
    form: Callable[[str], str] = str
    """What is looked for, of what was typed."""
    few: Callable[[Store, str], Collection[UUID]] | None = None
    """Finds the ids of those that match, where an index knows them that has them in another order than the list."""


@dataclass(frozen=True, slots=True)
class Search:
    """The conditions that a text asks for; they must all hold."""

    conditions: tuple[tuple[Word, str], ...]

    @classmethod
    def parse(cls, text: str, words: Mapping[str, Word]) -> Search:
        """Return the meaning of ``text``, in which ``words`` may stand before a colon."""
        return cls(tuple((words[name], value) for name, value in _terms(text, words)))

    @property
    def reaches(self) -> set[Reach]:
        """What the conditions cost."""
        return {word.reach for word, _ in self.conditions}

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return those of ``rows`` that are meant; none of them when a value cannot be, as in ``id:7``."""
        for word, value in self.conditions:
            try:
                rows = rows.filter((word.lookup, word.form(value)))
                if word.few is not None:
                    rows = rows.filter(pk__in=word.few(store_for(rows.db), word.form(value)))
            except (ValidationError, ValueError):
                return rows.none()
        return rows


def _terms(text: str, words: Mapping[str, Word]) -> Iterator[tuple[str, str]]:
    for term in smart_split(text):
        name, colon, value = term.partition(":")
        if colon and name in words:
            yield name, _unquoted(value)
        else:
            yield _guess(_unquoted(term)), _unquoted(term)


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] in "'\"" and value[0] == value[-1]
    return unescape_string_literal(value) if quoted else value


def _guess(term: str) -> str:
    """Return the word that a bare term stands for, by its shape: an OR of all would be served by no index."""
    try:
        UUID(term)
    except ValueError:
        return "task" if _PATH.fullmatch(term) else "key"
    return "id"


def _class_name(text: str) -> str:
    """
    Return the class of an error without its message: "error:ValueError" finds all of them.

    Messages quote what is private; whoever could search them letter by letter could read them.
    """
    return text.partition(":")[0].rpartition(".")[2].strip()


JOB_WORDS: Mapping[str, Word] = {
    "error": Word("last_error__startswith", Reach.ALL, _class_name),
    "id": Word("pk", Reach.FEW),
    "key": Word("dedupe_key", Reach.ALL),
    "queue": Word("queue", Reach.ALL),
    "task": Word("task__startswith", Reach.ALL),
    "tenant": Word("tenant", Reach.ALL),
}
"""The words for every table that holds jobs."""
LIVE_WORDS: Mapping[str, Word] = {
    **JOB_WORDS,
    "key": Word("dedupe_key", Reach.FEW, few=Store.few_with_key),
    "lease": Word("lease__id", Reach.FEW, few=Store.few_of_lease),
    "worker": Word("lease__worker", Reach.FEW, few=Store.few_of_worker),
}
"""The words for live jobs."""
FINISHED_WORDS: Mapping[str, Word] = {**JOB_WORDS, "worker": Word("worker", Reach.ALL)}
"""The words for finished jobs."""
