"""Chromium, as the tests drive it: found on the machine and never fetched, and heard whatever it complains about."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Of the program, in the order in which they are looked for."""
REMEDY = (
    f"No browser: none of {', '.join(NAMES)} on the PATH works. Install one, for instance: apt-get install chromium"
)
FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MS = 30_000
"""For what a page is to show; a busy machine is slow."""
NARROW = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
"""A telephone, held upright."""

REPORT = "addEventListener('securitypolicyviolation', event => console.error("
REPORT += "`policy: ${event.effectiveDirective} refuses ${event.blockedURI} ${event.sample}`));"


def program() -> str | None:
    """Return the path of the browser; None where there is none, or a stand-in that says how to install one."""
    return next((path for path in map(shutil.which, NAMES) if path and _answers(path)), None)


def _answers(path: str) -> bool:
    return subprocess.run([path, "--version"], capture_output=True, check=False, timeout=60).returncode == 0


@dataclass
class Witness:
    """Hears what goes wrong in the pages of a context, in the words of the browser."""

    complaints: list[str] = field(default_factory=list)

    def watch(self, context: Any) -> None:
        """Listen to every page of ``context``, from its beginning."""
        context.add_init_script(REPORT)
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.complaints.append(f"error: {error.error}"))
        context.on("dialog", self._dismiss)

    def _hear(self, message: Any) -> None:
        # The machine's network, not the page: a container that starts beside the tests changes it.
        is_of_page = "net::ERR_NETWORK_CHANGED" not in message.text
        if is_of_page and message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text} ({message.page.url if message.page else ''})")

    def _dismiss(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()
