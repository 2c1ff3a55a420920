"""Dead letters: jobs that stopped for good until a person decides."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..domain import fingerprints
from ..domain.states import DeathReason
from .base import JobColumns
from .failure import Failure


class DeadLetter(JobColumns):
    """The whole job, why it stopped, and who has looked at it."""

    reason = models.CharField(_("reason"), max_length=12, choices=DeathReason.choices)
    fingerprint = models.CharField(_("fingerprint"), max_length=fingerprints.LENGTH, default="")
    """Equal in those of one task that died of one kind of error: the group that a person looks at as one."""
    died_at = models.DateTimeField(_("died"))
    acknowledged_at = models.DateTimeField(_("acknowledged"), null=True, blank=True)
    acknowledged_by = models.CharField(_("acknowledged by"), max_length=150, blank=True, default="")
    note = models.TextField(_("note"), blank=True, default="")

    class Meta:
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        default_permissions = ("view",)
        permissions = (
            ("requeue_deadletter", "Can requeue dead letters"),
            ("amend_deadletter", "Can requeue dead letters with changed arguments"),
            ("discard_deadletter", "Can discard dead letters"),
            ("acknowledge_deadletter", "Can acknowledge dead letters"),
            ("copy_deadletter", "Can enqueue copies of dead letters"),
        )
        indexes = (
            models.Index(fields=("-died_at", "-id"), name="dwq_dead_newest"),
            models.Index(fields=("fingerprint", "-died_at", "-id"), name="dwq_dead_group"),
        )

    @property
    def failures(self) -> models.QuerySet[Failure]:
        """Every failed attempt of the job, oldest first."""
        return Failure.objects.using(self._state.db).filter(job_id=self.pk).order_by("id")
