"""Schedules: what is enqueued again and again, and when next."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from ..domain import encoding
from ..domain.clock import aware
from ..domain.schedules import Timing, digest_of
from ..domain.states import CatchUp, OffReason, Origin, Overlap
from .base import NAME_LENGTH, TASK_LENGTH

SCHEDULE_NAME_LENGTH = 150
CRON_LENGTH = 200
ZONE_LENGTH = 64


class Schedule(models.Model):
    """
    One schedule. Workers enqueue its job when ``next_at`` has come, and move it on in the same transaction.

    ``plan`` says what ``next_at`` was worked out for: whoever edits the columns above it, in whatever way, makes the
    two differ, and workers plan anew.
    """

    id = models.BigAutoField(_("id"), primary_key=True)
    name = models.CharField(_("name"), max_length=SCHEDULE_NAME_LENGTH, unique=True)
    task = models.CharField(_("task"), max_length=TASK_LENGTH)
    args = models.TextField(_("arguments"), default="[]")
    kwargs = models.TextField(_("keyword arguments"), default="{}")
    queue = models.CharField(_("queue"), max_length=NAME_LENGTH, default="default")
    tenant = models.CharField(_("tenant"), max_length=NAME_LENGTH, blank=True, default="")
    priority = models.SmallIntegerField(_("priority"), default=0)
    cron = models.CharField(_("cron line"), max_length=CRON_LENGTH, blank=True, default="")
    interval = models.DurationField(_("interval"), null=True, blank=True)
    zone = models.CharField(_("time zone"), max_length=ZONE_LENGTH, blank=True, default="")
    """A name of the IANA database; empty stands for TIME_ZONE."""
    starts_at = models.DateTimeField(_("starts"), null=True, blank=True)
    ends_at = models.DateTimeField(_("ends"), null=True, blank=True)
    catch_up = models.CharField(_("missed firings"), max_length=6, choices=CatchUp.choices, default=CatchUp.LATEST)
    overlap = models.CharField(_("while one is live"), max_length=5, choices=Overlap.choices, default=Overlap.SKIP)
    enabled = models.BooleanField(_("enabled"), default=True)
    off_reason = models.CharField(_("why off"), max_length=7, choices=OffReason.choices, blank=True, default="")
    origin = models.CharField(_("defined in"), max_length=5, choices=Origin.choices, default=Origin.ADMIN)
    plan = models.CharField(_("planned for"), max_length=32, blank=True, default="")
    next_at = models.DateTimeField(_("next"), null=True, blank=True)
    """When the next job is enqueued; NULL when none will be: switched off, over or at fault."""
    skew = models.DurationField(_("time let pass by tests"), default=timedelta)
    """Zero, but in tests that let time pass: ``next_at`` stands for a firing so much later. See ``Store.shift``."""
    last_at = models.DateTimeField(_("last"), null=True, blank=True)
    """The last firing that was enqueued."""
    fault = models.TextField(_("fault"), blank=True, default="")
    """What is wrong, where something is. Workers pass it over, unless it only concerns the task's code."""
    code_digest = models.CharField(_("version in the code"), max_length=32, blank=True, default="")
    former_digests = models.TextField(_("former versions in the code"), blank=True, default="")
    created_at = models.DateTimeField(_("created"), db_default=Now())
    """Where an interval without a start counts from."""

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        permissions = (
            ("switch_schedule", "Can switch schedules on and off"),
            ("run_schedule", "Can run schedules once now"),
        )
        indexes = (models.Index(fields=("next_at",), condition=Q(enabled=True), name="dwq_schedule_next"),)

    def __str__(self) -> str:
        return self.name

    @property
    def timing(self) -> Timing:
        """When it fires; not checked."""
        return Timing(
            cron=self.cron,
            interval=self.interval,
            zone=self.zone or settings.TIME_ZONE,
            starts_at=self.starts_at and aware(self.starts_at),
            ends_at=self.ends_at and aware(self.ends_at),
            anchor=aware(self.created_at),
        )

    @property
    def digest(self) -> str:
        """What ``plan`` is when ``next_at`` was worked out for these columns."""
        return digest_of(self.enabled, self.timing.digest())

    @property
    def decoded_args(self) -> list[Any]:
        """The positional arguments. Raises ValueError when the stored text is not a JSON list."""
        value: list[Any] = encoding.decode(self.args, list)
        return value

    @property
    def decoded_kwargs(self) -> dict[str, Any]:
        """The keyword arguments. Raises ValueError when the stored text is not a JSON object."""
        value: dict[str, Any] = encoding.decode(self.kwargs, dict)
        return value


class Firing(models.Model):
    """What one firing of a schedule came to: the job that it enqueued, or the live one for which it was skipped."""

    id = models.BigAutoField(_("id"), primary_key=True)
    schedule = models.ForeignKey(Schedule, models.CASCADE, related_name="firings", db_index=False)
    due_at = models.DateTimeField(_("due"), null=True, blank=True)
    """NULL when a person ran the schedule once."""
    fired_at = models.DateTimeField(_("fired"))
    job_id = models.UUIDField(_("job"))
    skipped = models.BooleanField(_("skipped"), default=False)

    class Meta:
        verbose_name = _("firing")
        verbose_name_plural = _("firings")
        default_permissions = ("view",)
        indexes = (models.Index(fields=("schedule", "-id"), name="dwq_firing"),)

    def __str__(self) -> str:
        return f"{self.schedule_id} {self.fired_at:%Y-%m-%d %H:%M:%S}"
