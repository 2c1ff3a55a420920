"""Posting JSON to other people's servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 10
#: The refusals that may turn into a success without anybody repairing anything.
PASSING = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}


class Answer(NamedTuple):
    """What the other server said."""

    status: int
    retry_after_seconds: float | None = None

    @property
    def accepted(self) -> bool:
        """Whether the delivery is over and done."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def final(self) -> bool:
        """Whether trying again is pointless: the request itself was refused, or belongs elsewhere."""
        refused = HTTPStatus.MULTIPLE_CHOICES <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
        return refused and self.status not in PASSING


def post(url: str, payload: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
    """
    Post ``payload`` as JSON and return the answer, whatever its status. Redirects are not followed.

    Raises OSError or HTTPException when no answer comes, at the latest after ``TIMEOUT_SECONDS``.
    """
    address = urlsplit(url)
    connect = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = connect(address.netloc, timeout=TIMEOUT_SECONDS)
    path = address._replace(scheme="", netloc="", fragment="").geturl() or "/"
    try:
        connection.request("POST", path, json.dumps(payload), {**headers, "Content-Type": "application/json"})
        return _answer(connection.getresponse())
    finally:
        connection.close()


def _answer(response: HTTPResponse) -> Answer:
    # Retry-After may also be a date; that rare form is left to the queue's own backoff.
    wait = response.headers.get("Retry-After", "")
    return Answer(response.status, float(wait) if wait.isdecimal() else None)
