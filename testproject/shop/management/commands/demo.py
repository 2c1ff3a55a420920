"""``manage.py demo``: the whole queue at work in half a minute."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser, call_command

from ...demo import report
from ...demo.books import Books
from ...demo.play import Play, ensure_login
from ...demo.waiting import DemoError

MIN_ORDERS = 20


class Command(BaseCommand):
    """Play the demonstration. Exit code 0 only if the books balance."""

    help = "Place orders in the shop, kill a worker in mid-work, and show what became of every job."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the size of the demonstration."""
        parser.add_argument("--orders", type=int, default=300, help="how many orders to place (default: 300)")

    def handle(self, *_args: Any, orders: int, verbosity: int, **_options: Any) -> None:
        """Play it and print the books."""
        if orders < MIN_ORDERS:
            raise CommandError(f"--orders is {orders}; with fewer than {MIN_ORDERS} there is nothing to see.")
        self.verbosity = verbosity
        with _orderly_end():
            call_command("migrate", interactive=False, verbosity=max(0, verbosity - 1))
            self.say("The database is migrated.")
            play = Play(orders, self.say, self.say_more)
            self._report(play, play.play())

    def say(self, line: str) -> None:
        """Print a line of the story."""
        if self.verbosity:
            self.stdout.write(line)
            self.stdout.flush()

    def say_more(self, line: str) -> None:
        """Print what only ``--verbosity 2`` wants to know."""
        if self.verbosity > 1:
            self.say(line)

    def _report(self, play: Play, books: Books) -> None:
        self._print("The books", report.book_lines(books))
        has_login = ensure_login()
        self._print("Look at the dead letters", report.next_lines(play.refusing, has_login=has_login))
        if faults := books.faults():
            raise CommandError("\n  ".join(["The books do not balance:", *faults]))
        self.stdout.write(self.style.SUCCESS(f"The books balance, after {play.elapsed_seconds:.0f} seconds."))

    def _print(self, title: str, lines: Iterator[str]) -> None:
        self.say(f"\n{title}")
        for line in lines:
            self.say(line)


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Make every way to end the demo unwind it, so that the workers are stopped on the way out."""
    heard: list[int] = []

    def leave(number: int, _frame: object) -> None:
        heard.append(number)
        sys.exit(128 + number)

    ways = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    wanted = [each for each in ways if signal.getsignal(each) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, leave) for number in wanted}
    try:
        yield
    except DemoError as error:
        if not heard:
            raise CommandError(str(error)) from error
    except Exception:
        # Inside a function that SQLite calls, what a handler raises comes out as an error of the database.
        if not heard:
            raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if heard:
            # Also where it came in a finaliser, where Python drops what a handler raises.
            raise CommandError("Interrupted. The workers are stopped.", returncode=128 + heard[0])
