"""Queues and their counters, and the rollups per minute that every statistic reads."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .base import NAME_LENGTH, TASK_LENGTH, WORKER_LENGTH


class Queue(models.Model):
    """A queue that was used or configured. Counters only grow, and are written in batches."""

    name = models.CharField(_("name"), max_length=NAME_LENGTH, primary_key=True)
    done = models.BigIntegerField(_("done"), default=0)
    failed = models.BigIntegerField(_("failed attempts"), default=0)
    dead = models.BigIntegerField(_("died"), default=0)
    cancelled = models.BigIntegerField(_("cancelled"), default=0)
    reaped = models.BigIntegerField(_("reaped"), default=0)
    window_started_at = models.DateTimeField(_("rate window began"), null=True, blank=True)
    window_taken = models.PositiveIntegerField(_("begun in the rate window"), default=0)
    duplicates = models.BigIntegerField(_("duplicates suppressed"), default=0)

    class Meta:
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ("view",)
        permissions = (
            ("pause_queue", "Can pause and resume queues, tenants and tasks"),
            ("move_queue", "Can move the jobs of a queue to another"),
            ("purge_queue", "Can cancel all ready jobs of a queue"),
        )

    def __str__(self) -> str:
        return self.name


class QueueMinute(models.Model):
    """
    What one worker did in one queue, to one task, in one minute.

    Each worker keeps its own row and writes it whole, so that a repeated write changes nothing and no two workers
    wait for each other; readers add up. After a day all that belong to an hour are one row, ``is_hour``, of no worker.
    ``wait_histogram`` and ``run_histogram`` count jobs by how long they waited and ran: one number per power of
    two of milliseconds, from 1 ms up, separated by commas.
    """

    id = models.BigAutoField(_("id"), primary_key=True)
    queue = models.CharField(_("queue"), max_length=NAME_LENGTH)
    task = models.CharField(_("task"), max_length=TASK_LENGTH)
    minute = models.DateTimeField(_("minute"))
    worker = models.CharField(_("worker"), max_length=WORKER_LENGTH)
    is_hour = models.BooleanField(_("of an hour"), default=False)
    done = models.PositiveIntegerField(_("done"), default=0)
    failed = models.PositiveIntegerField(_("failed attempts"), default=0)
    dead = models.PositiveIntegerField(_("died"), default=0)
    wait_histogram = models.TextField(_("waits"), default="")
    run_histogram = models.TextField(_("runs"), default="")

    class Meta:
        verbose_name = _("minute of a queue")
        verbose_name_plural = _("minutes of queues")
        default_permissions = ("view",)
        constraints = (models.UniqueConstraint(fields=("minute", "queue", "task", "worker"), name="dwq_minute"),)
        # What is still to be added up: behind months of hours it is found at once.
        indexes = (models.Index(fields=("minute",), condition=models.Q(is_hour=False), name="dwq_minute_single"),)

    def __str__(self) -> str:
        return f"{self.queue} {self.task} {self.minute:%Y-%m-%d %H:%M}"
