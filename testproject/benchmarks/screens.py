"""
Every page of the admin that shows the queue, and what the commands print: by name, each with what to ask for.

Names follow from the admin itself: a filter, a search word or an operation that is added there is measured with the
others. Where a name stands for several requests, such as all choices of a filter, the slowest of them counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import StringIO
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from django_workqueue.admin.changelist import AFTER
from django_workqueue.admin.job_columns import JobColumnsMixin
from django_workqueue.lifecycle.figures import RANGES

from .errors import BenchmarkError

Request = Callable[[], Any]
Requests = Callable[[], Sequence[Request]]

NOBODY = "ffffffff-0000-7000-8000-000000000000"
#: What is looked for by each word of the search box: what has many rows, few and old ones, and none.
SOUGHT: dict[str, tuple[Any, ...]] = {
    "id": (NOBODY,),
    "key": ("key-20", "nothing"),
    "queue": ("default", "rare", "nothing"),
    "task": ("shop.tasks.job_1", "shop.rare", "shop.nothing"),
    "tenant": ("large", "tenant-7", "nobody"),
    "lease": (1, 999_999_999),
}
GROUPS = ("c4ca4238a0b923820dcc509a6f75849b", "nothing")
MOST_CHOICES = 6
#: Conditions that no single index serves together.
TOGETHER = {
    "job": ("state=scheduled&queue=rare", "state=ready&queue=rare&q=tenant:nobody", "queue=rare&q=task:shop.nothing"),
    "deadletter": (f"fingerprint={GROUPS[0]}&queue=rare", "acknowledged=yes&reason=undecodable&queue=rare"),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "stats": ("stats",),
    "health": ("health", "--max-age", "999d", "--max-backlog", "10000", "--max-dead", "50000"),
    "jobs": ("jobs",),
    "jobs_of_rare_queue": ("jobs", "--queue", "rare"),
    "jobs_leased": ("jobs", "--state", "leased"),
    "jobs_cancelled": ("jobs", "--state", "cancelled"),
    "dead": ("dead",),
    "dead_of_rare_task": ("dead", "--task", "shop.rare.once"),
    "workers": ("workers",),
    "schedules": ("schedules",),
}


def names() -> tuple[str, ...]:
    """Return the names of all pages."""
    return tuple(name for name, _ in pages(Client()))


def pages(client: Client) -> Iterator[tuple[str, Requests]]:
    """Yield each page's name, and what makes its requests, which reads the database."""
    for screen in screens():
        yield from Screen(screen, client).pages()
    yield from _of_the_floor(client)
    for name, arguments in COMMANDS.items():
        yield f"command.{name}", _telling(arguments)


def screens() -> list[Any]:
    """Return the admin's classes for the queue's tables."""
    models = apps.get_app_config("django_workqueue").get_models()
    names = sorted((str(each._meta.model_name), each) for each in models if admin.site.is_registered(each))
    return [admin.site.get_model_admin(each) for _, each in names]


def _of_the_floor(client: Client) -> Iterator[tuple[str, Requests]]:
    overview, statistics = (_address("queue", name) for name in ("overview", "statistics"))
    yield "queue.overview", _getting(client, overview)
    for period in RANGES:
        yield f"queue.statistics_{period}", _getting(client, f"{statistics}?range={period}")
    narrow = f"{statistics}?{urlencode({'range': '24h', 'queue': 'default', 'task': 'shop.tasks.job_1'})}"
    yield "queue.statistics_of_task", _getting(client, narrow)
    groups = _address("deadletter", "groups")
    yield "deadletter.groups", _getting(client, groups)
    yield "deadletter.last_groups", _getting(client, f"{groups}?page=5")
    group = f"{_address('deadletter', 'all_requeue')}?{urlencode({'fingerprint': GROUPS[0]})}"
    yield "deadletter.requeue_group", _getting(client, group)
    yield "metrics.json", _getting(client, reverse("django_workqueue:metrics_json"))


class Screen:
    """The pages of one table."""

    def __init__(self, screen: Any, client: Client) -> None:
        self._screen = screen
        self._client = client
        self._name = screen.opts.model_name
        self._list = _address(self._name, "changelist")

    def pages(self) -> Iterator[tuple[str, Requests]]:
        """Yield the list with its filters and search words, the page of a row, and those that ask for confirmation."""
        places: dict[str, Requests] = {
            "list": lambda: [self._get()],
            "middle": lambda: [self._behind(0.5)],
            "last": lambda: [self._behind(1.0)],
            **{f"by_{name}": self._filtering(name) for name in self._filters()},
            **{f"find_{word}": self._finding(word) for word in self._words()},
            "page": lambda: [_get(self._client, self._row("change", share)) for share in (0.0, 0.99)],
            **{f"{each.name}_one": self._operating(each.name) for each in self._operations},
            **{f"{each.name}_selected": self._selecting(each.name) for each in self._many() if self._is_action(each)},
            **{f"{each.name}_all": self._matching(each.name) for each in self._many() if each.every},
        }
        if self._name in TOGETHER:
            places["together"] = lambda: [self._get(query) for query in TOGETHER[self._name]]
        for name, requests in places.items():
            yield f"{self._name}.{name}", requests

    @property
    def _operations(self) -> Sequence[Any]:
        return getattr(self._screen, "operations", ())

    def _many(self) -> list[Any]:
        return [each for each in self._operations if not each.single]

    def _is_action(self, operation: Any) -> bool:
        # Those of jobs ask before they act; others act at once.
        return isinstance(self._screen, JobColumnsMixin) and operation.name in (self._screen.actions or ())

    def _filters(self) -> list[str]:
        return [name for each in self._screen.list_filter if (name := getattr(each, "parameter_name", None))]

    def _words(self) -> list[str]:
        if hasattr(self._screen, "words") and isinstance(self._screen.words, dict):
            return list(self._screen.words)
        return ["text"] if self._screen.search_fields else []

    def _filtering(self, name: str) -> Requests:
        def requests() -> list[Request]:
            response: Any = self._client.get(self._list)
            shown = response.context_data["cl"]
            specs = (each for each in shown.filter_specs if getattr(each, "parameter_name", "") == name)
            # A filter that the list does not offer by itself is that of a group.
            choices = [value for spec in specs for value, _ in spec.lookup_choices] or GROUPS
            step = -(-len(choices) // MOST_CHOICES)
            return [self._get(urlencode({name: value})) for value in choices[::step]]

        return requests

    def _finding(self, word: str) -> Requests:
        def requests() -> list[Request]:
            sought = SOUGHT.get(word, ("nothing",))
            own = (self._place(0.5).pk,) if word == "id" else ()
            prefix = "" if word == "text" else f"{word}:"
            return [self._get(urlencode({"q": f"{prefix}{value}"})) for value in own + sought]

        return requests

    def _operating(self, name: str) -> Requests:
        return lambda: [_get(self._client, self._row(name, 0.0))]

    def _matching(self, name: str) -> Requests:
        return lambda: [_get(self._client, _address(self._name, f"all_{name}"))]

    def _selecting(self, name: str) -> Requests:
        def requests() -> list[Request]:
            chosen = [str(row.pk) for row in self._rows()[:100]]
            marked = {"action": name, "index": "0", ACTION_CHECKBOX_NAME: chosen}
            return [
                _post(self._client, self._list, marked),
                _post(self._client, self._list, {**marked, "select_across": "1"}),
            ]

        return requests

    def _get(self, query: str = "") -> Request:
        return _get(self._client, f"{self._list}?{query}")

    def _behind(self, share: float) -> Request:
        keyset = self._screen.keyset
        text = keyset.write(self._screen.model, keyset.position(self._place(share)))
        return self._get(urlencode({AFTER: text}))

    def _row(self, name: str, share: float) -> str:
        return _address(self._name, name, quote(self._place(share).pk))

    def _place(self, share: float) -> Any:
        rows = self._rows()
        # Of the last page, which is a full one where there are so many rows.
        place = int(max(0, rows.count() - 1 - self._screen.list_per_page) * share)
        return rows[place : place + 1].get()

    def _rows(self) -> Any:
        return self._screen.model._default_manager.order_by(*self._screen.keyset.columns)


def _address(model: str, name: str, *args: Any) -> str:
    return reverse(f"admin:django_workqueue_{model}_{name}", args=args)


def _get(client: Client, address: str) -> Request:
    return lambda: _checked(client.get(address), address)


def _post(client: Client, address: str, data: dict[str, Any]) -> Request:
    return lambda: _checked(client.post(address, data), address)


def _checked(response: Any, address: str) -> None:
    # What was too slow has a page that says so, and comes quickly.
    shown = getattr(response, "context_data", None) or {}
    if response.status_code != 200 or "too_slow" in shown:
        raise BenchmarkError(f"{address} answered {response.status_code}{', too slow' * ('too_slow' in shown)}.")


def _getting(client: Client, address: str) -> Requests:
    return lambda: [_get(client, address)]


def _telling(arguments: Sequence[str]) -> Requests:
    def tell() -> None:
        # Health is an exit code: what it says of these rows is not what is measured.
        with suppress(SystemExit):
            call_command("workqueue", *arguments, stdout=StringIO(), stderr=StringIO())

    return lambda: [tell]
