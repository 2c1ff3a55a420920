"""How a running job and whoever runs it reach each other."""

from __future__ import annotations

from typing import Protocol


class JobLink(Protocol):
    """What a running job reaches whoever runs it by."""

    @property
    def cancelled(self) -> bool:
        """Whether the job is to be cancelled, as far as is known. Cheap."""

    def heartbeat(self) -> bool:
        """Renew the lease now, and return whether the job is to be cancelled. Raises LeaseLostError."""

    async def aheartbeat(self) -> bool:
        """See heartbeat."""

    def report(self, progress: str) -> None:
        """Have the progress, JSON text, stored. Does not wait for it."""


class NoLink:
    """The link of a job that nothing outside of it can reach: one that runs inside its ``enqueue``."""

    cancelled = False

    def heartbeat(self) -> bool:
        """Renew nothing."""
        return False

    async def aheartbeat(self) -> bool:
        """Renew nothing."""
        return False

    def report(self, progress: str) -> None:
        """Tell nobody."""
