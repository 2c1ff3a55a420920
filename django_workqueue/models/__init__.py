"""The rows of the queue. Fields, constraints, indexes and reading words only: every write is in ``store/``."""

from .dead_letter import DeadLetter
from .failure import Failure
from .finished_job import FinishedJob
from .job import Job
from .lease import Lease
from .pause import Pause
from .queue import Queue, QueueMinute
from .schedule import Firing, Schedule
from .step import Step
from .worker import Worker
from .workflow import Workflow, WorkflowMember

__all__ = [
    "DeadLetter",
    "Failure",
    "FinishedJob",
    "Firing",
    "Job",
    "Lease",
    "Pause",
    "Queue",
    "QueueMinute",
    "Schedule",
    "Step",
    "Worker",
    "Workflow",
    "WorkflowMember",
]
