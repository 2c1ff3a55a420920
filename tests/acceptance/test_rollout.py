"""Deploys that leave workers and stored jobs of different ages beside each other."""

from __future__ import annotations

import os
from collections import Counter
from types import SimpleNamespace

import pytest

from django_workqueue.lifecycle import operate
from django_workqueue.models import DeadLetter, FinishedJob, Job, Worker
from tests.factories import JobFactory

from . import releases, tasks
from .harness import failure_kinds, settings, wait_for_books, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]


def test_unknown_task_harms_nobody_and_comes_back_by_an_alias(fleet, diary):
    """It is put off uncharged, then dead with its reason, and requeued once its new name is known (delayed_job#77)."""
    job = JobFactory(task="tests.acceptance.tasks.its_former_name", args='["kept"]', kwargs="{}", max_attempts=1)
    others = tasks.record.enqueue_many([()] * 5)
    worker = fleet.start("--concurrency", "1", **settings(unknown_task_patience=1.5))
    wait_for_books(others, succeeded=5)
    wait_until(lambda: len(failure_kinds(job)) > 1, "the job to be put off twice")
    assert Job.objects.get(pk=job.id).attempts == 0

    wait_for_books([job], unknown_task=1)
    assert set(failure_kinds(job)) == {"unknown_task"}
    assert "its_former_name" in DeadLetter.objects.get().last_error
    assert worker.stop() == 0

    aliases = {"tests.acceptance.tasks.its_former_name": "tests.acceptance.tasks.record"}
    fleet.start("--concurrency", "1", **settings(aliases=aliases))
    assert operate.requeue([job.id]).job_ids == [job.id]
    wait_for_books([job], succeeded=1)
    assert diary.starts(str(job.id))[0].note == "kept"


class Rollout:
    """Starts what runs during a rollout, by the code of one release or the other."""

    def __init__(self, fleet, folder) -> None:
        self._fleet = fleet
        self._paths = {
            release: f"{place}{os.pathsep}{fleet.environment['PYTHONPATH']}"
            for release, place in releases.write(folder).items()
        }

    def worker(self, release, name):
        """Start a worker that gives jobs half a second to end."""
        options = ("--name", name, "--concurrency", "2", "--shutdown-timeout", "0.5")
        return self._fleet.start(*options, PYTHONPATH=self._paths[release])

    def web(self, release):
        """Start a web process that stores jobs all the time."""
        web = self._fleet.start(program=releases.WEB, ready=False, PYTHONPATH=self._paths[release])
        web.wait_for_log("up", seconds=60)
        return web

    def run(self, release, *words):
        """Run a management command to its end."""
        program = ("-m", "django", *words)
        assert self._fleet.start(program=program, ready=False, PYTHONPATH=self._paths[release]).wait(60) == 0


def enqueued(diary, release=None):
    """Return the jobs that the web processes have stored."""
    entries = diary.entries("enqueued")
    return [SimpleNamespace(id=entry.job) for entry in entries if release in {None, entry.note}]


def test_rollout_step_by_step_loses_and_charges_nothing(fleet, diary, tmp_path):
    """As docs/howto/rollout.md has it: old and new code side by side, jobs stored all the time, each one ends once."""
    rollout = Rollout(fleet, tmp_path)
    old_workers = [rollout.worker("old", f"old{number}") for number in (1, 2)]
    old_web = rollout.web("old")
    rollout.run("old", "workqueue", "enqueue", f"{releases.MODULE}.take_long")
    wait_until(lambda: "old take_long" in {entry.note for entry in diary.starts()}, "the long job to run")

    rollout.run("new", "migrate", "--check")
    rollout.run("new", "workqueue", "schedules", "sync")
    for number, old in enumerate(old_workers, 1):
        rollout.worker("new", f"new{number}")
        stored = len(enqueued(diary))
        assert old.stop() == 0
        wait_until(lambda stored=stored: len(enqueued(diary)) > stored, "the old code to store jobs meanwhile")
    assert set(Worker.objects.values_list("name", flat=True)) == {"new1", "new2"}

    new_web = rollout.web("new")
    wait_until(lambda: enqueued(diary, "new"), "the new code to store jobs")
    diary.open("no-more-old")
    assert old_web.wait() == 0
    diary.open("no-more-new", "long")
    assert new_web.wait() == 0

    jobs = enqueued(diary)
    wait_for_books(jobs, succeeded=len(jobs), seconds=60)
    wait_until(lambda: not Job.objects.exists(), "the long job to end")
    long = FinishedJob.objects.get(task=f"{releases.MODULE}.take_long")
    notes = [entry.note for entry in diary.starts(str(long.id))]
    assert (notes[0], notes[-1]) == ("old take_long", "new take_long")
    started = Counter(entry.job for entry in diary.starts())
    for finished in FinishedJob.objects.all():
        assert finished.attempts == 1
        assert 1 <= started[str(finished.id)] <= 1 + finished.interruptions
    assert {entry.note for entry in diary.starts()} >= {"old greet", "new greet", "new wave"}
    assert not DeadLetter.objects.exists()
