"""``manage.py workqueue cancel``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from ...lifecycle import operate
from .. import arguments


class Cancel:
    """Cancels jobs: those that wait at once, those that run by asking them to end."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the ids, whose jobs they may be, and how firmly to ask."""
        parser.add_argument("ids", nargs="+", metavar="ID", type=arguments.job_id, help="The id of a job.")
        parser.add_argument("--force", action="store_true", help="End what does not heed the request, as if timed out.")
        parser.add_argument("--tenant", help="Touch the jobs of this tenant only.")

    def run(self, *, database: str | None, **options: Any) -> dict[str, Any]:
        """Cancel, and say what became of each."""
        done = operate.cancel(options["ids"], force=options["force"], tenant=options["tenant"], database=database)
        return {
            "cancelled": [str(pk) for pk in done.cancelled],
            "requested": [str(pk) for pk in done.requested],
            "refused": {str(refusal.job_id): refusal.problem for refusal in done.refused},
        }

    def lines(self, report: dict[str, Any]) -> Iterator[str]:
        """Say one line for each job."""
        for pk in report["cancelled"]:
            yield f"Job {pk} is cancelled."
        for pk in report["requested"]:
            yield f"Job {pk} runs, and has been asked to end."
        yield from report["refused"].values()
