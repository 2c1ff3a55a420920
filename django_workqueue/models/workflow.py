"""Workflows: jobs that depend on each other, and what is known of each of them until the whole has ended."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.base import ModelState
from django.utils.translation import gettext_lazy as _

from ..domain.states import MemberKind, MemberState, WorkflowState
from .base import NAME_LENGTH, TASK_LENGTH


class Workflow(models.Model):
    """
    One graph of jobs. Its row is the lock under which members end: one at a time, whichever workers they ran on.

    ``culprit`` is the id of the job that made the workflow fail, ``problem`` one line on why. ``on_error`` is the job
    to be enqueued then, as JSON; it is taken away as it is used, so that a workflow that fails again is silent.
    """

    id = models.UUIDField(_("id"), primary_key=True)
    tenant = models.CharField(_("tenant"), max_length=NAME_LENGTH, blank=True, default="")
    is_mixed = models.BooleanField(_("has jobs of several tenants"), default=False)
    """Whether a member, or the error callback, is another tenant's: who may see one tenant may not see the whole."""
    title = models.CharField(_("title"), max_length=TASK_LENGTH, blank=True, default="")
    state = models.CharField(_("state"), max_length=9, choices=WorkflowState.choices, default=WorkflowState.RUNNING)
    size = models.PositiveIntegerField(_("tasks"), default=0)
    done = models.PositiveIntegerField(_("tasks done"), default=0)
    culprit = models.UUIDField(_("culprit"), null=True, blank=True)
    problem = models.TextField(_("problem"), blank=True, default="")
    on_error = models.TextField(_("error callback"), blank=True, default="")
    on_error_job = models.UUIDField(_("job of the error callback"), null=True, blank=True)
    result = models.TextField(_("result"), null=True, blank=True)  # noqa: DJ001 - NULL is "none yet": "" is no JSON
    """JSON text of the result of the whole."""
    retention = models.DurationField(_("kept for"))
    enqueued_at = models.DateTimeField(_("enqueued"))
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    expires_at = models.DateTimeField(_("kept until"), null=True, blank=True)

    class Meta:
        verbose_name = _("workflow")
        verbose_name_plural = _("workflows")
        default_permissions = ("view",)
        permissions = (("cancel_workflow", "Can cancel workflows"),)
        indexes = (
            models.Index(fields=("expires_at",), condition=Q(expires_at__isnull=False), name="dwq_workflow_expires"),
        )

    def __str__(self) -> str:
        return f"{self.title or 'workflow'} {self.pk}"


@cache
def _new_columns() -> dict[str, Any]:
    """Return the defaults of a new member's columns; none of them can be changed."""
    return {field.attname: field.get_default() for field in WorkflowMember._meta.concrete_fields}


class WorkflowMember(models.Model):
    """
    One node of a workflow's graph: a task, whose job has the same id, or a chain or group of other nodes.

    Positions count the nodes from 0, each before what it holds, so that a node's own nodes are those behind it up to
    ``last``. A task that must wait has no job yet, only its ``plan``: nothing that looks at jobs steps over it.
    """

    id = models.UUIDField(_("id"), primary_key=True)
    workflow = models.ForeignKey(
        Workflow,
        verbose_name=_("workflow"),
        on_delete=models.DO_NOTHING,
        # A constraint would look up the workflow for each of thousands of members, and they go together anyway.
        db_constraint=False,
        db_index=False,
        related_name="members",
    )
    position = models.PositiveIntegerField(_("position"))
    parent = models.PositiveIntegerField(_("position of the parent"), null=True, blank=True)
    last = models.PositiveIntegerField(_("last position inside"))
    kind = models.CharField(_("kind"), max_length=5, choices=MemberKind.choices, default=MemberKind.TASK)
    state = models.CharField(_("state"), max_length=9, choices=MemberState.choices, default=MemberState.WAITING)
    task = models.CharField(_("task"), max_length=TASK_LENGTH, blank=True, default="")
    plan = models.TextField(_("plan"), null=True, blank=True)  # noqa: DJ001 - NULL, once there is a job, costs no byte
    """JSON text of the job to be enqueued when its turn comes."""
    result = models.TextField(_("result"), null=True, blank=True)  # noqa: DJ001 - NULL is "none yet": "" is no JSON
    done_at = models.DateTimeField(_("done"), null=True, blank=True)

    class Meta:
        verbose_name = _("member of a workflow")
        verbose_name_plural = _("members of workflows")
        default_permissions = ()
        constraints = (models.UniqueConstraint(fields=("workflow", "position"), name="dwq_member_position"),)
        indexes = (
            # What a group still waits for: empty when it is complete, however large it is.
            models.Index(fields=("workflow", "parent"), condition=Q(done_at__isnull=True), name="dwq_member_open"),
        )

    def __str__(self) -> str:
        return f"{self.task or self.kind} {self.position} of {self.workflow_id}"

    @classmethod
    def assemble(cls, **columns: Any) -> WorkflowMember:
        """Return a new member of these columns, with the defaults of the others. As ``Job.assemble``."""
        member = cls.__new__(cls)
        member.__dict__.update(_new_columns(), **columns, _state=ModelState())
        return member
