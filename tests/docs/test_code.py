"""The code on the pages runs: modules are imported, sessions are typed, settings are checked, commands are parsed."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
import shlex
import unittest
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, CommandParser
from django.http import HttpRequest
from django.test import RequestFactory, override_settings

from django_workqueue import WorkResult
from django_workqueue.checks import check_settings, check_tasks
from django_workqueue.domain.states import DeathReason
from django_workqueue.management.commands.runworkers import Command
from django_workqueue.models import Job
from django_workqueue.testing import ThreadedWorker, drain
from testproject.shop.models import Order, Shop
from tests.factories import DeadLetterFactory, FailureFactory

from .pages import FLAGS, PAGES, Block, blocks, read

COMMAND = re.compile(r"manage\.py runworkers ?([^\n`]*)")
CONTAINER = re.compile(r"^CMD (\[.*\])$", re.MULTILINE)
ANSWERED = [page for page in PAGES if list(blocks(page, "pycon")) and "tutorial" not in page]
WITH_MODULES = [page for page in PAGES if any(block.file.startswith("shop/") for block in blocks(page, "python"))]
SETTINGS = [(page, block) for page in PAGES for block in blocks(page, "python") if block.file == "settings.py"]


def bury_the_receipt():
    """Make the dead letter that the how-to guide looks at."""
    letter = DeadLetterFactory(
        task="shop.tasks.send_receipt",
        queue="mail",
        reason=DeathReason.REJECTED,
        last_error="Reject: Order 17 has no e-mail address.",
    )
    FailureFactory(
        job_id=letter.pk, attempt=1, kind="rejected", message="Order 17 has no e-mail address.", next_try_at=None
    )


BEFORE = {"docs/howto/dead-letters.md": bury_the_receipt}


def make_order(email="ada@example.com"):
    """Store an order of a shop."""
    shop, _ = Shop.objects.get_or_create(slug="books", defaults={"name": "Books", "webhook_url": "https://b.example/"})
    return Order.objects.create(shop=shop, email=email, total="9.50")


@pytest.mark.parametrize("page", PAGES)
def test_python_on_the_page_is_python(page):
    """Whoever copies a block gets no syntax error, also from one that is not run here."""
    for block in blocks(page, "python"):
        tree = ast.parse(dedented(block))
        if not block.file and all(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body):
            exec(compile(tree, page, "exec"), {})


def dedented(block: Block) -> str:
    """Return the block's text; methods shown without their class are put into one."""
    return f"class _:\n{block.text}" if block.text.startswith("    ") else block.text


@pytest.mark.parametrize("page", WITH_MODULES)
def test_modules_on_the_page_can_be_imported(page, make_shop):
    """What a page shows as files of an app works as files of an app, tasks included."""
    assert make_shop(page)


@pytest.mark.django_db
@pytest.mark.parametrize("page", ANSWERED)
def test_session_on_the_page_answers_as_shown(page, make_shop):
    """The answers on the page are those that the reader gets."""
    make_shop(page)
    BEFORE.get(page, lambda: None)()
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []

    for block in blocks(page, "pycon"):
        session = doctest.DocTestParser().get_doctest(block.text, names, page, page, 0)
        runner.run(session, out=report.append, clear_globs=False)
        names = session.globs

    assert not report, "".join(report)


@pytest.mark.parametrize(
    ("page", "block"), SETTINGS, ids=[f"{page}-{number}" for number, (page, _) in enumerate(SETTINGS)]
)
def test_settings_on_the_page_pass_the_checks(page, block):
    """Settings that are copied from a page are settings that work."""
    names = {"INSTALLED_APPS": [], "DATABASES": {"default": {}}, "BASE_DIR": Path()}
    exec(block.text, names)

    shown = {name: names[name] for name in ("WORKQUEUE", "TASKS") if name in names}
    with override_settings(**shown):
        assert [message for message in [*check_settings(), *check_tasks()] if message.is_serious()] == []
    assert all(importlib.util.find_spec(entry["ENGINE"]) for entry in names["DATABASES"].values() if entry)
    assert all(app in django_settings.INSTALLED_APPS for app in names["INSTALLED_APPS"])


def command_lines(page: str) -> list[list[str]]:
    """Return the arguments of every runworkers on a page."""
    text = read(page)
    lines = [shlex.split(found, comments=True) for found in COMMAND.findall(text)]
    containers = [json.loads(found) for found in CONTAINER.findall(text)]
    return [*lines, *(words[words.index("runworkers") + 1 :] for words in containers)]


@pytest.mark.parametrize("page", [page for page in PAGES if command_lines(page)])
def test_runworkers_on_the_page_can_be_started(page):
    """No page shows an option that the command does not have."""
    parser = CommandParser(called_from_command_line=False)
    Command().add_arguments(parser)

    for words in command_lines(page):
        try:
            parser.parse_args(words)
        except CommandError as error:
            pytest.fail(f"{' '.join(words)}: {error}")


def order_form(**changed: str) -> HttpRequest:
    """Return the request that places an order."""
    order = make_order()
    given = {"shop": order.shop_id, "email": order.email, "total": "9.50", "card": "4242424242424242"}
    return RequestFactory().post("/", given | changed)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", ["README.md", "docs/howto/enqueue.md"])
def test_view_on_the_page_stores_order_and_job_together(page, make_shop):
    """A view that is copied from the page keeps the promise that the page makes."""
    view = make_shop(page)["views"].place_order
    placed = order_form()

    assert view(placed).status_code == 201
    with pytest.raises(ValueError, match="didn't validate"):
        view(order_form(total="a lot"))

    assert [job.task for job in Job.objects.all()] == ["shop.tasks.send_receipt"]
    assert Job.objects.get().decoded_args == [Order.objects.order_by("pk")[1].pk]


@pytest.mark.django_db
def test_slices_reach_the_end(make_shop):
    """The job that works in slices enqueues the next one until nothing is left, and then stops."""
    archive = make_shop("docs/howto/leases.md")["tasks"].archive
    for _ in range(5):
        make_order()

    archive.enqueue(0, 2)

    assert [attempt.result for attempt in drain()] == [2, 2, 1]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "arguments", "endings"),
    [
        ("confirm", [0], ["dead"]),
        ("deliver", [1], ["retry", "retry", "retry", "retry", "dead"]),
        ("import_prices", [1], ["retry", "retry", "retry", "retry", "succeeded"]),
    ],
)
def test_retries_are_as_the_guide_says(name, arguments, endings, make_shop):
    """The guide's tasks end as its sentences say: rejected at once, retried to the end, saved at the last."""
    task = getattr(make_shop("docs/howto/retries.md")["tasks"], name)

    task.enqueue(*arguments)
    attempts = drain(until=3600, raise_errors=False)

    assert [attempt.ending for attempt in attempts] == endings


@pytest.mark.django_db
def test_contexts_reach_both_kinds_of_task(make_shop):
    """Both ways of asking for the context work as the reference shows."""
    tasks = make_shop("docs/reference/context.md")["tasks"]
    results: list[WorkResult] = [tasks.charge.enqueue(1), tasks.refund.enqueue(1)]

    attempts = drain()

    assert [attempt.result for attempt in attempts] == [f"{result.id}: attempt 1 of 5" for result in results]


@pytest.mark.django_db
def test_tests_of_the_guide_pass(make_shop):
    """The tests that the guide on testing shows are tests that pass."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(make_shop("docs/howto/testing.md")["tests"])
    result = unittest.TestResult()

    suite.run(result)

    assert result.testsRun == 4
    assert [text for _, text in [*result.errors, *result.failures]] == []


@pytest.mark.django_db(transaction=True)
def test_worker_test_of_the_guide_passes(make_shop):
    """The test with a real worker that the guide shows passes."""
    modules = make_shop("docs/howto/testing.md")

    with ThreadedWorker() as worker:
        modules["test_worker"].test_worker_sends_the_receipt(make_order(), worker)
