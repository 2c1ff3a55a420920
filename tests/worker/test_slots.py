"""The slots of one worker process, with its real threads."""

from __future__ import annotations

import asyncio

import pytest

from django_workqueue import task
from django_workqueue.models import FinishedJob
from django_workqueue.worker.options import WorkerOptions
from django_workqueue.worker.process import EXIT_CLEAN, WorkerProcess

SLOTS = 3
running: list[None] = []
counts: list[int] = []


@task(retention=60)
async def overlap():
    """Note how many run at the same time."""
    running.append(None)
    counts.append(len(running))
    await asyncio.sleep(0)
    running.pop()


@pytest.mark.django_db(transaction=True)
def test_coroutines_keep_to_the_slots():
    """Short coroutines are claimed ahead, yet no more than --concurrency run at a time: each may hold a connection."""
    running.clear()
    counts.clear()
    overlap.enqueue_many([()] * 300)

    code = WorkerProcess(WorkerOptions(burst=True, concurrency=SLOTS)).run()

    assert code == EXIT_CLEAN
    assert FinishedJob.objects.count() == 300
    assert max(counts) <= SLOTS
