"""The sellers' servers: an HTTP endpoint on loopback, mostly well, at times busy, refusing for one shop."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

#: Deliveries to this path are answered 400, to any other 200 or 503.
REFUSING_PATH = "/refuses-everything/"
WORKING_PATH = "/hooks/"
#: One job in so many meets a busy server, and one in so many of these meets it twice.
BUSY_ONE_IN = 6
LATENCY_SECONDS = 0.04


class Delivery(NamedTuple):
    """One request as the endpoint saw it."""

    job: str
    shop: str
    status: int


class Endpoint:
    """Serves on a free port of 127.0.0.1 while the context lasts, and remembers every delivery."""

    def __init__(self, latency_seconds: float = LATENCY_SECONDS) -> None:
        self.deliveries: list[Delivery] = []
        self.latency_seconds = latency_seconds
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.endpoint = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def address(self) -> str:
        """The endpoint's URL up to the path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def url(self, shop: str, *, refuses: bool) -> str:
        """Return the address for the deliveries of ``shop``."""
        return f"{self.address}{REFUSING_PATH if refuses else WORKING_PATH}{shop}"

    def receive(self, path: str, job: str) -> int:
        """Take a delivery in and return the status to answer."""
        with self._lock:
            self._seen[job] += 1
            status = self._judge(path, job)
            self.deliveries.append(Delivery(job, path.rpartition("/")[2], status))
        return status

    def _judge(self, path: str, job: str) -> int:
        if path.startswith(REFUSING_PATH):
            return HTTPStatus.BAD_REQUEST
        return HTTPStatus.SERVICE_UNAVAILABLE if self._seen[job] <= busy_times(job) else HTTPStatus.OK

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def busy_times(job: str) -> int:
    """Return how often the endpoint is too busy for ``job``: mostly 0, at most 2, drawn from the job's id."""
    first, second = hashlib.sha256(job.encode()).digest()[:2]
    return 0 if first % BUSY_ONE_IN else 1 if second % BUSY_ONE_IN else 2


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    endpoint: Endpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a worker that is killed does not wait for its answer, and that is the point."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.server.endpoint.latency_seconds)
        status = self.server.endpoint.receive(self.path, self.headers["Idempotency-Key"])
        self.send_response(status)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing: the books count every delivery."""
