"""The history of failed attempts, appended and never changed."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..domain.states import FailureKind
from .base import WORKER_LENGTH


class Failure(models.Model):
    """One failed attempt of one job. Joined by job id, wherever the job is now."""

    id = models.BigAutoField(_("id"), primary_key=True)
    job_id = models.UUIDField(_("job"))
    attempt = models.PositiveSmallIntegerField(_("attempt"))
    kind = models.CharField(_("kind"), max_length=12, choices=FailureKind.choices)
    error_class = models.CharField(_("error class"), max_length=300, blank=True, default="")
    message = models.TextField(_("message"), blank=True, default="")
    traceback = models.TextField(_("traceback"), blank=True, default="")
    worker = models.CharField(_("worker"), max_length=WORKER_LENGTH)
    lease_id = models.BigIntegerField(_("lease"))
    started_at = models.DateTimeField(_("started"))
    failed_at = models.DateTimeField(_("failed"))
    next_try_at = models.DateTimeField(_("next try"), null=True, blank=True)
    """When the job may be claimed again; empty when this failure buried it."""

    class Meta:
        verbose_name = _("failure")
        verbose_name_plural = _("failures")
        default_permissions = ("view",)
        indexes = (models.Index(fields=("job_id", "id"), name="dwq_failure_job"),)

    def __str__(self) -> str:
        return f"attempt {self.attempt}: {self.error_class or self.kind}"
