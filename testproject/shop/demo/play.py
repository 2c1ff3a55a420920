"""The story: orders come in, two workers serve them, one is killed, and at the end nothing is missing."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.template.defaultfilters import pluralize

from django_workqueue.models import DeadLetter, FinishedJob, Job

from .books import Books, Ledger, read_mails
from .customers import REFUSING, Customers, open_shops
from .endpoint import Endpoint
from .report import Say, progress_line
from .waiting import wait_for
from .workers import WorkerProcess

#: A killed worker's work is given away when its lease lapses: 30 seconds by default, too long to watch.
WORKQUEUE = {"LEASE": 4, "POLL_INTERVAL": 0.2, "REAP_INTERVAL": 0.5}
DRAIN_SECONDS = 90
PROGRESS_SECONDS = 1.0


class Play:
    """
    One run of the demonstration, with shops and workers of its own.

    ``say`` takes the lines of the story, ``say_more`` what the workers printed.
    """

    def __init__(self, orders: int, say: Say, say_more: Say) -> None:
        self.orders = orders
        self.say = say
        self.say_more = say_more
        self.run = secrets.token_hex(3)
        self._began = time.monotonic()
        self._next_progress = 0.0

    def play(self) -> Books:
        """Play it and return the books. Raises DemoError when it cannot be played to its end."""
        with ExitStack() as stack:
            endpoint = stack.enter_context(Endpoint())
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dwq-demo-")))
            self.say(f"The shops' servers answer at {endpoint.address}: mostly 200, at times 503, one always 400.")
            shops = open_shops(self.run, endpoint)
            customers = Customers(shops)
            ledger = Ledger([shop.slug for shop in shops])
            workers = [stack.enter_context(self._worker(number, folder)) for number in (1, 2)]
            killed_with = self._act(customers, ledger, workers)
            return self._close(customers, ledger, endpoint, killed_with)

    def _worker(self, number: int, folder: Path) -> WorkerProcess:
        name = f"demo-{self.run}-{number}"
        return WorkerProcess(name, folder / f"{name}.log", {"WORKQUEUE": json.dumps(WORKQUEUE)})

    def _act(self, customers: Customers, ledger: Ledger, workers: list[WorkerProcess]) -> set[str]:
        doomed, survivor = workers
        for worker in workers:
            worker.wait_until_ready()
            self.say(f"Worker {worker.name} is up, process {worker.pid}.")
        self._place(customers, self.orders // 2)
        killed_with = doomed.kill_in_mid_work(lambda: customers.place(1))
        held = f"{len(killed_with)} job{pluralize(len(killed_with))}"
        self.say(f"Killed {doomed.name} with SIGKILL while it held {held}.")
        self._place(customers, max(0, self.orders - customers.count))
        self._drain(ledger, survivor)
        survivor.stop()
        self.say(f"Worker {survivor.name} stopped in order.")
        for worker in workers:
            self.say_more(f"{worker.name} printed at last:\n{worker.tail}")
        return killed_with

    def _place(self, customers: Customers, count: int) -> None:
        before = customers.declined
        customers.place(count)
        declined = customers.declined - before
        self.say(f"Placed {count} orders through the view; {declined} of them rolled back after enqueueing.")

    def _drain(self, ledger: Ledger, survivor: WorkerProcess) -> None:
        def drained() -> bool:
            survivor.require_alive()
            self._progress(ledger)
            return not ledger.unfinished()

        wait_for(drained, "the last job to end", seconds=DRAIN_SECONDS)
        self.say(progress_line(self.elapsed_seconds, ledger.progress()))

    def _progress(self, ledger: Ledger) -> None:
        if self.elapsed_seconds >= self._next_progress:
            self.say(progress_line(self.elapsed_seconds, ledger.progress()))
            self._next_progress = self.elapsed_seconds + PROGRESS_SECONDS

    @property
    def elapsed_seconds(self) -> float:
        """The time since the start."""
        return time.monotonic() - self._began

    @property
    def refusing(self) -> str:
        """The slug of the shop whose server refuses every delivery."""
        return f"{REFUSING.lower()}-{self.run}"

    def _close(self, customers: Customers, ledger: Ledger, endpoint: Endpoint, killed_with: set[str]) -> Books:
        promised = {job for order in customers.accepted for job in (order.receipt, order.webhook)}
        return Books(
            accepted=customers.accepted,
            declined=customers.declined,
            refusing=self.refusing,
            killed_with=killed_with,
            stored_orders=ledger.orders(),
            live=ledger.ids(Job),
            done=ledger.ids(FinishedJob),
            dead=ledger.ids(DeadLetter),
            failures=ledger.failures(),
            mails=read_mails(settings.OUTBOX, promised),
            deliveries=[each for each in endpoint.deliveries if each.shop in ledger.tenants],
        )


def ensure_login() -> bool:
    """Return whether ``demo`` with password ``demo`` may enter the admin: made here, and only under DEBUG."""
    if not settings.DEBUG:
        return False
    user = User.objects.filter(username="demo").first()
    user = user or User.objects.create_superuser("demo", "demo@shop.example", "demo")
    return user.is_superuser and user.check_password("demo")
