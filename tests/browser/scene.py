"""A shop on a bad evening: an endpoint is down, a worker was killed, a queue has nobody, and the rest goes well."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from django_workqueue import chain, group
from django_workqueue.domain.progress import Progress
from django_workqueue.domain.states import FailureKind
from django_workqueue.models import Job, Lease, Queue, QueueMinute, Worker, Workflow
from django_workqueue.testing import drain
from tests.factories import (
    DeadLetterFactory,
    FailureFactory,
    FinishedJobFactory,
    JobFactory,
    LeaseFactory,
    PauseFactory,
    QueueMinuteFactory,
    ScheduleFactory,
    StepFactory,
    WorkerFactory,
    ago,
    ahead,
)

TENANTS = ("acme", "globex", "initech", "umbrella")
TRACEBACK = """Traceback (most recent call last):
  File "shop/tasks.py", line 41, in deliver_webhook
    answer = session.post(order.shop.webhook_url, json=order.as_webhook(), timeout=10)
  File "shop/http.py", line 88, in post
    raise ConnectTimeout(url)
{error}"""

REFUSED = "requests.exceptions.ConnectTimeout: POST https://api.globex.example/orders: no answer within 10 s"
DECLINED = "shop.payments.CardDeclinedError: the bank declined charge 84113 (insufficient funds)"
NO_ADDRESS = "django_workqueue.exceptions.Reject: Order 2291 has no e-mail address."
TOO_LARGE = "PIL.Image.DecompressionBombError: Image size (312500000 pixels) exceeds limit"

HOUR: tuple[tuple[str, str, int, int], ...] = (
    ("mail", "shop.tasks.send_receipt", 46, 25),
    ("webhooks", "shop.tasks.deliver_webhook", 31, 5),
    ("payments", "shop.tasks.charge_card", 18, 30),
    ("media", "shop.tasks.resize_photo", 9, 35),
)
"""What is done a minute: queue, task, about how many, and of how many one fails."""


def play() -> None:
    """Write the rows of the evening."""
    lots = random.Random(1)
    _workflows()
    workers = _fleet()
    _queues()
    _rollups(lots, workers)
    _work(lots, workers)
    _dead(lots, workers)
    _schedules()


def keep_alive() -> None:
    """Let the workers that live, and what they hold, not grow old while the scene is looked at."""
    now = timezone.now()
    living = Worker.objects.exclude(name="batch2")
    living.update(seen_at=now - timedelta(seconds=3))
    held = Lease.objects.filter(worker__in=living.values("pk"))
    held.update(renewed_at=now - timedelta(seconds=3), expires_at=now + timedelta(seconds=27))


def _fleet() -> list[Worker]:
    given = {"versions": "django_workqueue 0.1, Django 6.1, Python 3.13", "slots": 8}
    mail = [
        WorkerFactory(id=f"web{n}:{4100 + n}:{tail}", name=f"web{n}", host=f"shop-web-{n}", pid=4100 + n,
                      queues="mail,webhooks,payments", memory_bytes=(141 + n) * 2**20, running=n, done=18_240 + 917 * n,
                      failed=212 - 40 * n, **given)
        for n, tail in ((1, "5f3a"), (2, "c01d"))
    ]  # fmt: skip
    heavy = WorkerFactory(
        id="batch1:733:9b2e", name="batch1", host="shop-batch-1", pid=733, queues="imports,media", running=2,
        memory_bytes=388 * 2**20, done=5_412, failed=61, **given,
    )  # fmt: skip
    WorkerFactory(
        silent=True, id="batch2:690:77aa", name="batch2", host="shop-batch-2", pid=690, queues="imports,media",
        memory_bytes=1900 * 2**20, done=4_998, failed=58, **given,
    )  # fmt: skip
    return [*mail, heavy]


def _queues() -> None:
    counters = {
        "mail": 212_480,
        "webhooks": 141_007,
        "payments": 80_119,
        "media": 41_650,
        "imports": 310,
        "reports": 96,
    }
    for name, done in counters.items():
        given = {"done": done, "failed": done // 60, "dead": done // 2000}
        Queue.objects.update_or_create(name=name, defaults=given)
    PauseFactory(name="payments", paused_at=ago(minutes=25), paused_by="olga")
    PauseFactory(kind="tenant", name="umbrella", paused_at=ago(hours=3), paused_by="henk")


def _rollups(lots: random.Random, workers: list[Worker]) -> None:
    now = timezone.now().replace(second=0, microsecond=0)
    rows = [
        _rollup(queue, task, max(0, round(lots.gauss(done, done / 6))), of, minute=now - age, worker=workers[0].id)
        for age in (timedelta(minutes=minutes) for minutes in range(6 * 60))
        for queue, task, done, of in HOUR
    ]
    QueueMinute.objects.bulk_create(rows)


def _rollup(queue: str, task: str, count: int, of: int, *, minute: datetime, worker: str) -> QueueMinute:
    is_down = queue == "webhooks" and minute > timezone.now() - timedelta(minutes=22)
    failed = round(count * 0.6) if is_down else count // of
    waits = [0, 1, 3, count // 2, count // 3, count // 9, 1, 1 if is_down else 0]
    runs = [0, 0, 0, 0, count // 8, count // 2, count // 3, 2, 1, int(is_down) * 4]
    return QueueMinuteFactory.build(
        queue=queue, task=task, minute=minute, worker=worker, done=count - failed, failed=failed,
        dead=failed // 12, wait_histogram=",".join(map(str, waits)), run_histogram=",".join(map(str, runs)),
    )  # fmt: skip


def _order(lots: random.Random) -> dict[str, Any]:
    return {"args": f"[{lots.randint(2000, 2999)}]", "kwargs": "{}", "tenant": lots.choice(TENANTS)}


def _work(lots: random.Random, workers: list[Worker]) -> None:
    for _ in range(14):
        FinishedJobFactory(
            task="shop.tasks.send_receipt",
            queue="mail",
            worker=workers[0].id,
            enqueued_at=ago(minutes=4),
            **_order(lots),
        )
    FinishedJobFactory(cancelled=True, task="shop.tasks.resize_photo", queue="media", tenant="acme")
    for _ in range(9):
        JobFactory(task="shop.tasks.charge_card", queue="payments", ready_at=ago(minutes=24), **_order(lots))
    for number in range(7):
        JobFactory(
            task="shop.tasks.deliver_webhook", queue="webhooks", scheduled=True, ready_at=ahead(minutes=2 + number),
            attempts=2, last_error=REFUSED, **_order(lots),
        )  # fmt: skip
    for month in ("2026-09", "2026-10", "2026-11"):
        JobFactory(
            task="shop.tasks.build_report", queue="reports", args=f'["{month}"]', kwargs="{}", ready_at=ago(hours=2)
        )
    for worker in workers[:2]:
        _running(worker, "shop.tasks.send_receipt", "mail", lots)
    _import(workers[2])
    lapsed = LeaseFactory(lapsed=True, worker="batch2:690:77aa", queue="media", acquired_at=ago(minutes=11))
    JobFactory(leased=True, lease=lapsed, task="shop.tasks.resize_photo", queue="media", args="[7741]", kwargs="{}")


def _running(worker: Worker, task: str, queue: str, lots: random.Random) -> None:
    lease = LeaseFactory(worker=worker.id, queue=queue)
    for _ in range(worker.running):
        JobFactory(leased=True, lease=lease, task=task, queue=queue, **_order(lots))


def _import(worker: Worker) -> Job:
    progress = Progress(4_180, 6_500, "rows of the catalogue")
    job = JobFactory(
        leased=True, lease=LeaseFactory(worker=worker.id, queue="imports", acquired_at=ago(minutes=6)),
        task="shop.tasks.import_catalogue", queue="imports", tenant="globex", args='["globex-spring.csv"]', kwargs="{}",
        priority=10, ready_at=ago(minutes=7), attempts=2, max_attempts=3, progress=progress.encode(),
        last_error="ConnectionResetError: [Errno 104]",
        dedupe_key="catalogue-globex", metadata='{"requested_by":"henk"}', enqueued_at=ago(minutes=9),
    )  # fmt: skip
    FailureFactory(
        job_id=job.pk, error_class="builtins.ConnectionResetError", message="[Errno 104] Connection reset by peer",
        traceback=TRACEBACK.format(error="ConnectionResetError: [Errno 104] Connection reset by peer"),
        worker=worker.id, started_at=ago(minutes=9), failed_at=ago(minutes=7), next_try_at=ago(minutes=6, seconds=30),
    )  # fmt: skip
    StepFactory(job_id=job.pk, name="download", tenant="globex", worker=worker.id)
    return job


def _dead(lots: random.Random, workers: list[Worker]) -> None:
    for minute in range(20, 0, -1):
        _letter(lots, workers, "webhooks", "deliver_webhook", REFUSED, minutes=minute)
    for hours in (9, 6, 3, 1):
        _letter(lots, workers, "payments", "charge_card", DECLINED, minutes=60 * hours)
    _letter(lots, workers, "mail", "send_receipt", NO_ADDRESS, minutes=95, rejected=True, attempts=1)
    _letter(lots, workers, "media", "resize_photo", TOO_LARGE, minutes=240, acknowledged=True,
            note="The seller will send a smaller one.")  # fmt: skip


def _letter(
    lots: random.Random, workers: list[Worker], queue: str, task: str, error: str, *, minutes: int, **more: Any
) -> None:
    letter = DeadLetterFactory(
        queue=queue, task=f"shop.tasks.{task}", last_error=error, died_at=ago(minutes=minutes),
        enqueued_at=ago(minutes=minutes + 40), **{**_order(lots), **more},
    )  # fmt: skip
    error_class, _, message = error.partition(": ")
    for attempt in range(1, letter.attempts + 1):
        before = (letter.attempts - attempt) * 8 + minutes
        is_last = attempt == letter.attempts
        FailureFactory(
            job_id=letter.pk, attempt=attempt, error_class=error_class, message=message,
            traceback=TRACEBACK.format(error=error), worker=workers[attempt % 2].id,
            kind=FailureKind.REJECTED if "rejected" in more else FailureKind.ERROR,
            started_at=ago(minutes=before, seconds=10), failed_at=ago(minutes=before),
            next_try_at=None if is_last else ago(minutes=before - 8),
        )  # fmt: skip


def _schedules() -> None:
    given = {"zone": "Europe/Amsterdam", "kwargs": "{}", "last_at": ago(hours=14), "next_at": ahead(hours=10)}
    ScheduleFactory(name="nightly report", task="shop.tasks.build_report", args='["today"]', queue="reports",
                    cron="30 3 * * *", **given)  # fmt: skip
    ScheduleFactory(name="catalogue of globex", task="shop.tasks.import_catalogue", args='["globex-spring.csv"]',
                    queue="imports", tenant="globex", cron="", interval=timedelta(hours=6), **given)  # fmt: skip
    ScheduleFactory(name="monthly mail", task="shop.tasks.mail_report", args='["last"]', queue="reports",
                    cron="0 7 1 * *", enabled=False, **given | {"next_at": None})  # fmt: skip


def _workflows() -> None:
    """One that has succeeded, one under way. Run before anything else waits, for ``drain`` runs whatever is ready."""
    from shop import tasks  # noqa: PLC0415 - on the path while the scene is played

    for first, title in ((7731, "Autumn"), (7741, "Winter")):
        photos = group(*(tasks.resize_photo.signature(first + number) for number in range(3)))
        handle = chain(photos, tasks.make_album.signature(title=title), tasks.announce_album.signature()).enqueue()
        if title == "Autumn":
            drain()
        Workflow.objects.filter(pk=handle.id).update(enqueued_at=timezone.now() - timedelta(minutes=3))
