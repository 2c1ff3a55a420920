"""Worker processes, as they report themselves."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.utils.translation import gettext_lazy as _

from .base import BY_LENGTH, NAME_LENGTH, WORKER_LENGTH


class WorkerState(models.TextChoices):
    """What a worker process is doing."""

    RUNNING = "running", _("Running")
    QUIET = "quiet", _("Quiet")
    STOPPING = "stopping", _("Stopping")


class WorkerRequest(models.TextChoices):
    """What a person wants of a worker process. It learns of it at its next beat."""

    WORK = "work", _("Work")
    QUIET = "quiet", _("Be quiet")
    STOP = "stop", _("Stop")


class Worker(models.Model):
    """
    One start of one worker process. The id is fresh at every start: two containers may share host name and pid.

    ``origin`` says in which process namespace of which boot the process began, and when: whether it still runs can then
    be told by another process there.
    """

    id = models.CharField(_("id"), max_length=WORKER_LENGTH, primary_key=True)
    name = models.CharField(_("name"), max_length=NAME_LENGTH)
    host = models.CharField(_("host"), max_length=255)
    pid = models.IntegerField(_("process id"))
    origin = models.CharField(_("origin"), max_length=100, blank=True, default="")
    queues = models.TextField(_("queues"))
    slots = models.PositiveSmallIntegerField(_("slots"))
    versions = models.CharField(_("versions"), max_length=200)
    started_at = models.DateTimeField(_("started"))
    seen_at = models.DateTimeField(_("seen"))
    clock_ahead = models.DurationField(_("clock ahead of the database's"), default=timedelta)
    """As the last beat saw it: less the time that its statement took to the server."""
    state = models.CharField(_("state"), max_length=8, choices=WorkerState.choices, default=WorkerState.RUNNING)
    request = models.CharField(_("asked to"), max_length=5, choices=WorkerRequest.choices, default=WorkerRequest.WORK)
    requested_at = models.DateTimeField(_("asked"), null=True, blank=True)
    requested_by = models.CharField(_("asked by"), max_length=BY_LENGTH, blank=True, default="")
    memory_bytes = models.BigIntegerField(_("memory in bytes"), default=0)
    running = models.PositiveIntegerField(_("running"), default=0)
    done = models.BigIntegerField(_("done"), default=0)
    failed = models.BigIntegerField(_("failed"), default=0)

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ("view",)
        permissions = (("manage_worker", "Can quiet, stop and forget workers"),)
        # Of two processes that start under one name at the same moment, the database lets one through.
        constraints = (models.UniqueConstraint(fields=["name"], name="dwq_worker_name"),)

    def __str__(self) -> str:
        return self.id
