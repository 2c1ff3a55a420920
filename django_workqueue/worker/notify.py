"""What systemd is told of a service of Type=notify: that it is ready, that it stops, that it is not stuck."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Self


class Notifier:
    """Sends datagrams to the service manager. Without one, nothing is sent."""

    def __init__(self, address: str = "", watchdog_seconds: float | None = None) -> None:
        self._address = address
        self.watchdog_seconds = watchdog_seconds
        """Silence after which the service manager ends the process; None when it does not watch."""

    @classmethod
    def from_environment(cls) -> Self:
        """Take the address out of the environment: what jobs start must not speak for the worker."""
        address = os.environ.pop("NOTIFY_SOCKET", "")
        microseconds = os.environ.pop("WATCHDOG_USEC", "")
        watched = os.environ.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        return cls(address, int(microseconds) / 1e6 if watched and microseconds.isdigit() else None)

    @property
    def has_listener(self) -> bool:
        """Whether there is a service manager."""
        return bool(self._address)

    def send(self, state: str) -> None:
        """Send a state such as "READY=1". A service manager that cannot be reached changes nothing."""
        if not self._address:
            return
        # A name that begins with "@" is one in the abstract namespace, which begins with a zero byte.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(state.encode(), address)

    def beat(self) -> None:
        """Say that the process is not stuck, where somebody watches."""
        if self.watchdog_seconds is not None:
            self.send("WATCHDOG=1")
