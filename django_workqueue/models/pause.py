"""Pauses: the switches that keep workers from beginning a queue's, a tenant's or a task's jobs."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..domain.states import PauseKind
from .base import TASK_LENGTH


class Pause(models.Model):
    """One thing that is paused, by whom and since when. Removing the row resumes it."""

    id = models.BigAutoField(_("id"), primary_key=True)
    kind = models.CharField(_("kind"), max_length=6, choices=PauseKind.choices)
    name = models.CharField(_("name"), max_length=TASK_LENGTH)
    """The queue's or tenant's name, or the task's dotted path."""
    paused_at = models.DateTimeField(_("paused"))
    paused_by = models.CharField(_("paused by"), max_length=150, blank=True, default="")

    class Meta:
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")
        default_permissions = ("view",)
        constraints = (models.UniqueConstraint(fields=("kind", "name"), name="dwq_pause"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
