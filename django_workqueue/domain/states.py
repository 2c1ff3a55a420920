"""The words that rows carry: states of a live job, endings, kinds of failure, reasons to die."""

from __future__ import annotations

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class JobState(TextChoices):
    """
    Where a live job stands. It goes scheduled -> ready -> leased, and back to either after a failed attempt.

    One whose concurrency key has no slot free is blocked, one whose task is paused is parked.
    """

    SCHEDULED = "scheduled", _("Scheduled")
    BLOCKED = "blocked", _("Blocked")
    PARKED = "parked", _("Parked")
    READY = "ready", _("Ready")
    LEASED = "leased", _("Leased")


class StepState(TextChoices):
    """
    How far a step of a job has come.

    One that was begun by an attempt which has ended since is as unknown as one that is marked so.
    """

    BEGUN = "begun", _("Begun")
    DONE = "done", _("Done")
    UNKNOWN = "unknown", _("Unknown")


class PauseKind(TextChoices):
    """What can be paused: nothing of it is begun any more, by any worker."""

    QUEUE = "queue", _("Queue")
    TENANT = "tenant", _("Tenant")
    TASK = "task", _("Task")


class Ending(TextChoices):
    """How a finished job ended."""

    SUCCEEDED = "succeeded", _("Succeeded")
    CANCELLED = "cancelled", _("Cancelled")


class FailureKind(TextChoices):
    """Why one attempt failed."""

    ERROR = "error", _("Error")
    TIMEOUT = "timeout", _("Timeout")
    LAPSED = "lapsed", _("Lease lapsed")
    CAPPED = "capped", _("Lease reached its cap")
    ADOPTED = "adopted", _("Worker restarted")
    INTERRUPTED = "interrupted", _("Interrupted by a stop")
    REJECTED = "rejected", _("Rejected")
    UNKNOWN_TASK = "unknown_task", _("Unknown task")
    UNDECODABLE = "undecodable", _("Undecodable arguments")


RECLAIMED = (FailureKind.LAPSED, FailureKind.CAPPED, FailureKind.ADOPTED)
"""What others record of an attempt whose worker never told of it."""


class DeathReason(TextChoices):
    """Why a job stopped for good until a person decides."""

    EXHAUSTED = "exhausted", _("Attempts used up")
    REJECTED = "rejected", _("Rejected")
    UNKNOWN_TASK = "unknown_task", _("Unknown task")
    UNDECODABLE = "undecodable", _("Undecodable arguments")
    CANCELLED = "cancelled", _("Failed after it was to be cancelled")


class WorkflowState(TextChoices):
    """Where a workflow stands. A failed one goes on when its dead member is requeued; the other endings are final."""

    RUNNING = "running", _("Running")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


class MemberKind(TextChoices):
    """What a node of a workflow's graph is."""

    TASK = "task", _("Task")
    CHAIN = "chain", _("Chain")
    GROUP = "group", _("Group")


class MemberState(TextChoices):
    """How far a node of a workflow's graph has come. A task is active from the enqueue of its job on."""

    WAITING = "waiting", _("Waiting")
    ACTIVE = "active", _("Active")
    DONE = "done", _("Done")
    DEAD = "dead", _("Dead")
    CANCELLED = "cancelled", _("Cancelled")


class CatchUp(TextChoices):
    """What becomes of the firings that a schedule missed while no worker ran."""

    LATEST = "latest", _("Make up for the last one")
    SKIP = "skip", _("Skip them")
    ALL = "all", _("Make up for all")


class Overlap(TextChoices):
    """What a schedule does while the job of its previous firing is still live."""

    SKIP = "skip", _("Skip the firing")
    ALLOW = "allow", _("Run beside it")


class Origin(TextChoices):
    """Where a schedule is defined."""

    CODE = "code", _("Code")
    ADMIN = "admin", _("Admin")


class OffReason(TextChoices):
    """Who switched a schedule off."""

    PERSON = "person", _("Switched off by a person")
    CODE = "code", _("Declared as off")
    REMOVED = "removed", _("No longer in the code")
