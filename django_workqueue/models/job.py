"""Live work: waiting, due or leased. The table's size is the backlog, never the history."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.base import ModelState
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from ..domain.states import JobState
from .base import JobColumns, Literal
from .lease import Lease


class JobQuerySet(models.QuerySet["Job"]):
    """Reading words for jobs."""

    def ready(self) -> JobQuerySet:
        """Jobs that a worker may claim now."""
        return self._in(JobState.READY)

    def scheduled(self) -> JobQuerySet:
        """Jobs whose time has not come."""
        return self._in(JobState.SCHEDULED)

    def blocked(self) -> JobQuerySet:
        """Jobs that wait for a slot of their concurrency key."""
        return self._in(JobState.BLOCKED).filter(concurrency_key__isnull=False)

    def parked(self) -> JobQuerySet:
        """Jobs that were set aside while their task is paused."""
        return self._in(JobState.PARKED)

    def leased(self) -> JobQuerySet:
        """Jobs that a worker holds."""
        return self._in(JobState.LEASED)

    def waiting(self) -> JobQuerySet:
        """Jobs that no worker holds, whatever they wait for."""
        return self.filter(lease__isnull=True)

    def _in(self, state: JobState) -> JobQuerySet:
        """Jobs in one state, in the words by which the partial index of that state is known."""
        return self.filter(state=Literal(state.value))


class Job(JobColumns):
    """One live unit of work."""

    state = models.CharField(_("state"), max_length=9, choices=JobState.choices, default=JobState.READY)
    ready_at = models.DateTimeField(_("ready"), db_default=Now())
    """Due time while scheduled; since when it may be claimed once ready."""
    lapses = models.PositiveSmallIntegerField(_("lapses in a row"), default=0)
    """Leases that lapsed one after the other. A job that has any is claimed alone, and alone pays for the next."""
    lease = models.ForeignKey(
        Lease,
        verbose_name=_("lease"),
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        # A constraint would make every completion check the lease row: four times slower, measured.
        db_constraint=False,
        db_index=False,
        related_name="jobs",
    )
    cancel_requested_at = models.DateTimeField(_("cancel requested"), null=True, blank=True)
    """Since when a running job is to be cancelled. A job that waits never has it: it is cancelled at once."""
    cancel_force = models.BooleanField(_("cancel by force"), null=True, blank=True)
    """True: its thread is interrupted, and in the end its worker starts over. NULL, for nearly all, costs no byte."""
    progress = models.TextField(_("progress"), null=True, blank=True)  # noqa: DJ001 - NULL, for nearly all, costs no byte
    """JSON text of what the running task last reported: ``{"done": 3, "total": 10, "text": "..."}``."""
    rank = models.GeneratedField(
        verbose_name=_("rank"),
        expression=F("priority") * -1,
        output_field=models.SmallIntegerField(),
        db_persist=True,
    )
    """Minus the priority: the ready index ascends in every column, and one row comparison starts a claim at a mark."""

    objects = JobQuerySet.as_manager()

    @classmethod
    @cache
    def new_columns(cls) -> Mapping[str, Any]:
        """Return the defaults of a new job's columns; none of them can be changed."""
        stored = (field for field in cls._meta.concrete_fields if not field.generated)
        return MappingProxyType({field.attname: field.get_default() for field in stored})

    @classmethod
    def assemble(cls, common: Mapping[str, Any] | None = None, /, **columns: Any) -> Job:
        """
        Return a new job of these columns, with the defaults of the others, or with what ``common`` says of all columns.

        As ``Job(**columns)``, without Django's walk through every field, its descriptors and its signals: of the time
        that it takes to enqueue many jobs, that was a third.
        """
        job = cls.__new__(cls)
        job.__dict__ = {**(cls.new_columns() if common is None else common), **columns, "_state": ModelState()}
        return job

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ("view",)
        permissions = (
            ("cancel_job", "Can cancel jobs"),
            ("reschedule_job", "Can change when and where jobs run"),
            ("reveal_job", "Can see masked values"),
        )
        constraints = (
            models.CheckConstraint(condition=Q(priority__range=(-100, 100)), name="dwq_job_priority"),
            models.CheckConstraint(
                condition=Q(state="leased", lease__isnull=False)
                | Q(state__in=("scheduled", "blocked", "parked", "ready"), lease__isnull=True),
                name="dwq_job_leased_has_lease",
            ),
            models.UniqueConstraint(
                # The key in front: people look for one without knowing its lane.
                fields=("dedupe_key", "queue", "tenant"),
                condition=Q(dedupe_key__isnull=False) & (Q(dedupe_until_start=False) | ~Q(state="leased")),
                name="dwq_job_dedupe",
            ),
        )
        indexes = (
            models.Index(
                fields=("queue", "tenant", "rank", "ready_at", "id"),
                condition=Q(state="ready"),
                name="dwq_job_ready",
            ),
            models.Index(fields=("ready_at",), condition=Q(state="scheduled"), name="dwq_job_scheduled"),
            models.Index(
                fields=("queue", "tenant", "concurrency_key", "rank", "ready_at", "id"),
                condition=Q(state="blocked", concurrency_key__isnull=False),
                name="dwq_job_blocked",
            ),
            models.Index(
                fields=("queue", "tenant", "concurrency_key"),
                condition=Q(state__in=("ready", "leased"), concurrency_key__isnull=False),
                name="dwq_job_slots",
            ),
            models.Index(fields=("task",), condition=Q(state="parked"), name="dwq_job_parked"),
            models.Index(fields=("lease",), condition=Q(lease__isnull=False), name="dwq_job_lease"),
        )
