"""
The screens of the queue in Django's admin.

Everything is in the mixins, so that a project may build its own classes from them, with a theme's ModelAdmin
for example, unregister these and register those.
"""

from __future__ import annotations

from django.contrib import admin

from ..models import DeadLetter, FinishedJob, Job, Lease, Pause, Queue, Schedule, Worker, Workflow
from .base import ModelAdmin
from .dead_letters import DeadLetterAdminMixin
from .finished_jobs import FinishedJobAdminMixin
from .jobs import JobAdminMixin
from .leases import LeaseAdminMixin
from .pauses import PauseAdminMixin
from .queues import QueueAdminMixin
from .schedules import ScheduleAdminMixin
from .workers import WorkerAdminMixin
from .workflows import WorkflowAdminMixin

__all__ = [
    "DeadLetterAdmin",
    "DeadLetterAdminMixin",
    "FinishedJobAdmin",
    "FinishedJobAdminMixin",
    "JobAdmin",
    "JobAdminMixin",
    "LeaseAdmin",
    "LeaseAdminMixin",
    "PauseAdmin",
    "PauseAdminMixin",
    "QueueAdmin",
    "QueueAdminMixin",
    "ScheduleAdmin",
    "ScheduleAdminMixin",
    "WorkerAdmin",
    "WorkerAdminMixin",
    "WorkflowAdmin",
    "WorkflowAdminMixin",
]


@admin.register(Job)
class JobAdmin(JobAdminMixin, ModelAdmin):
    """Live jobs."""


@admin.register(DeadLetter)
class DeadLetterAdmin(DeadLetterAdminMixin, ModelAdmin):
    """Dead letters."""


@admin.register(FinishedJob)
class FinishedJobAdmin(FinishedJobAdminMixin, ModelAdmin):
    """Finished jobs."""


@admin.register(Lease)
class LeaseAdmin(LeaseAdminMixin, ModelAdmin):
    """Leases."""


@admin.register(Worker)
class WorkerAdmin(WorkerAdminMixin, ModelAdmin):
    """Workers."""


@admin.register(Pause)
class PauseAdmin(PauseAdminMixin, ModelAdmin):
    """Pauses."""


@admin.register(Queue)
class QueueAdmin(QueueAdminMixin, ModelAdmin):
    """Queues."""


@admin.register(Schedule)
class ScheduleAdmin(ScheduleAdminMixin, ModelAdmin):
    """Schedules."""


@admin.register(Workflow)
class WorkflowAdmin(WorkflowAdminMixin, ModelAdmin):
    """Workflows."""
