"""Health over HTTP: whether a worker lives, and whether it is ready, as small JSON for probes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .thread import WorkerThread

LIVE_SECONDS = 60.0
"""How long a dispatcher may be without a round and still count as live: no statement of its own takes so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a worker or supervisor is at this moment. It is known, not found out: a probe asks no database."""

    live: bool
    """Whether it does its work, or could, if only the database were there."""
    ready: bool
    """Whether it serves its queues."""
    facts: Mapping[str, Any] = field(default_factory=dict)


class HealthServer(WorkerThread):
    """Answers /livez and /readyz with 200 or 503. Raises OSError when the address cannot be had."""

    def __init__(self, host: str, port: int, examine: Callable[[], Health], on_crash: Callable[[], None]) -> None:
        super().__init__("health", on_crash)

        class Handler(_Handler):
            pass

        Handler.examine = staticmethod(examine)
        self._server = ThreadingHTTPServer((host, port), Handler)

    def work(self) -> None:
        """Serve until it is closed."""
        self._server.serve_forever()

    def close(self) -> None:
        """End serving and free the port."""
        if self.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = 5.0
    examine: Callable[[], Health]

    def do_GET(self) -> None:
        """Answer one probe."""
        health = self.examine()
        verdicts = {"/livez": health.live, "/readyz": health.ready}
        verdict = verdicts.get(self.path.partition("?")[0])
        if verdict is None:
            self._answer(404, {"status": "unknown", "paths": list(verdicts)})
        else:
            self._answer(200 if verdict else 503, {"status": "ok" if verdict else "failing", **health.facts})

    def _answer(self, code: int, body: Mapping[str, Any]) -> None:
        content = json.dumps(body).encode() + b"\n"
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        """Tell nobody the version of Python."""
        return "django_workqueue"

    def log_message(self, *_args: Any) -> None:
        """Say nothing: probes come every few seconds."""
