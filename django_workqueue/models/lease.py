"""Leases: one row per claim, covering the jobs that it took."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from .base import NAME_LENGTH, WORKER_LENGTH


class LeaseQuerySet(models.QuerySet["Lease"]):
    """Reading words for leases."""

    def expired(self, now: datetime | models.Expression) -> LeaseQuerySet:
        """Leases that no longer hold at ``now``, by the database's clock."""
        return self.filter(expires_at__lte=now)


class Lease(models.Model):
    """
    One claim by one worker: until when it may run those jobs. The id is the fence.

    There is no index on ``expires_at``: the table is as small as the fleet, and an index would end the HOT
    updates of every renewal.
    """

    id = models.BigAutoField(_("id"), primary_key=True)
    worker = models.CharField(_("worker"), max_length=WORKER_LENGTH)
    queue = models.CharField(_("queue"), max_length=NAME_LENGTH)
    acquired_at = models.DateTimeField(_("acquired"))
    renewed_at = models.DateTimeField(_("renewed"))
    expires_at = models.DateTimeField(_("expires"))
    deadline_at = models.DateTimeField(_("deadline"))
    """The hard cap: renewals never go past it."""

    objects = LeaseQuerySet.as_manager()

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"lease {self.pk} of {self.worker}"
