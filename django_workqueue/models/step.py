"""The ledger of steps: what a job has done already, so that a replay does not do it again."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..domain.states import StepState
from ..domain.steps import STEP_LENGTH
from .base import NAME_LENGTH, WORKER_LENGTH


class Step(models.Model):
    """
    One step of one job under its idempotency key. The first outcome that is recorded wins; a replay is given it.

    ``digest`` tells whether a replay asks for the same: another one under the same key is refused.
    """

    id = models.UUIDField(_("id"), primary_key=True)
    """New with each begin: who began the step, and nobody else, may record or free it."""
    tenant = models.CharField(_("tenant"), max_length=NAME_LENGTH, blank=True, default="")
    key = models.CharField(_("idempotency key"), max_length=64)
    digest = models.CharField(_("digest of the arguments"), max_length=64)
    job_id = models.UUIDField(_("job"))
    name = models.CharField(_("step"), max_length=STEP_LENGTH)
    state = models.CharField(_("state"), max_length=7, choices=StepState.choices, default=StepState.BEGUN)
    outcome = models.TextField(_("outcome"), blank=True, default="")
    """JSON text of the step's return value, once it is done; empty where that could not be stored."""
    worker = models.CharField(_("worker"), max_length=WORKER_LENGTH, blank=True, default="")
    lease_id = models.BigIntegerField(_("lease"), null=True, blank=True)
    begun_at = models.DateTimeField(_("begun"))
    done_at = models.DateTimeField(_("done"), null=True, blank=True)
    expires_at = models.DateTimeField(_("kept until"))

    class Meta:
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        default_permissions = ("view",)
        constraints = (models.UniqueConstraint(fields=("tenant", "key"), name="dwq_step_key"),)
        indexes = (
            models.Index(fields=("job_id",), name="dwq_step_job"),
            models.Index(fields=("expires_at",), name="dwq_step_expires"),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.job_id}"
