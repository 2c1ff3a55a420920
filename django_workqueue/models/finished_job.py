"""Jobs that ended well or were cancelled, kept for a while so that results can be read."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..domain.states import Ending
from .base import WORKER_LENGTH, JobColumns


class FinishedJob(JobColumns):
    """A job that is over. The row goes at ``expires_at``."""

    outcome = models.CharField(_("outcome"), max_length=9, choices=Ending.choices)
    result = models.TextField(_("result"), default="null")
    """JSON text of the return value."""
    worker = models.CharField(_("worker"), max_length=WORKER_LENGTH, blank=True, default="")
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"))
    expires_at = models.DateTimeField(_("kept until"))

    class Meta:
        verbose_name = _("finished job")
        verbose_name_plural = _("finished jobs")
        default_permissions = ("view",)
        permissions = (("copy_finishedjob", "Can enqueue copies of finished jobs"),)
        indexes = (models.Index(fields=("expires_at",), name="dwq_finished_expires"),)
