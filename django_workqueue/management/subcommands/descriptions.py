"""Jobs as reports describe them: identifiers, counts and times. Values that a job was given are not among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...domain.encoding import decode
from ...domain.masking import Veil
from ...domain.progress import Progress
from ...lifecycle.listing import Found, Page, argument_names
from ...models import DeadLetter, Failure, FinishedJob, Job
from ..words import WIDTH, cut, since, written

_SHARED = ("task", "queue", "tenant", "priority", "attempts", "max_attempts")
_KEYS = ("interruptions", "dedupe_key", "concurrency_key", "workflow")
_LASTING = {"ready", "leased", "blocked", "parked"}


def of_page(page: Page) -> dict[str, Any]:
    """Describe a page of a list."""
    rows = [of_row(row) | {"error": row.error_class or row.failure_kind or None} for row in page.rows]
    return {"jobs": rows, "next": page.next, "read_at": written(page.read_at)}


def of_row(row: Job | FinishedJob | DeadLetter) -> dict[str, Any]:
    """Describe one job, wherever it is."""
    shared = {"id": str(row.pk), **{name: getattr(row, name) for name in _SHARED}}
    return shared | {"arguments": argument_names(row), "enqueued_at": written(row.enqueued_at)} | _place(row)


def _place(row: Job | FinishedJob | DeadLetter) -> dict[str, Any]:
    match row:
        case FinishedJob():
            times = {"started_at": written(row.started_at), "at": written(row.finished_at)}
            return {"state": row.outcome, "worker": row.worker or None, **times}
        case DeadLetter():
            seen = {"acknowledged_at": written(row.acknowledged_at), "acknowledged_by": row.acknowledged_by or None}
            return {"state": "dead", "reason": row.reason, "at": written(row.died_at), **seen}
        case _:
            lease = row.lease
            at = row.ready_at if lease is None else lease.acquired_at
            asked = written(row.cancel_requested_at)
            worker = None if lease is None else lease.worker
            return {"state": row.state, "worker": worker, "at": written(at), "cancel_requested_at": asked}


def of_found(found: Found, veil: Veil, *, values: bool) -> dict[str, Any]:
    """Describe one job with its failures; with ``values`` what it was given, returned and said, behind ``veil``."""
    row = found.row
    keys = {name: getattr(row, name) for name in _KEYS} | {"workflow": row.workflow and str(row.workflow)}
    report = of_row(row) | keys | _trace(veil) | {"progress": _progress(row, veil), "read_at": written(found.read_at)}
    report["failures"] = [_failure(each, veil, values=values) for each in found.failures]
    if values:
        report |= {name: _value(text) for name, text in veil.columns.items()}
        report["last_error"] = veil.text(row.last_error)
    return report


def _trace(veil: Veil) -> dict[str, Any]:
    try:
        metadata = decode(veil.columns["metadata"], dict)
    except ValueError:
        metadata = {}
    return {name: metadata.get(name) for name in ("correlation_id", "traceparent")}


def _progress(row: Any, veil: Veil) -> str | None:
    stored = getattr(row, "progress", None)
    progress = None if stored is None else Progress.decode(stored)
    return None if progress is None else veil.text(str(progress))


def _failure(row: Failure, veil: Veil, *, values: bool) -> dict[str, Any]:
    told = {"attempt": row.attempt, "kind": row.kind, "error": row.error_class or None, "worker": row.worker}
    told |= {name: written(getattr(row, name)) for name in ("started_at", "failed_at", "next_try_at")}
    return told | ({"message": veil.text(row.message), "traceback": veil.text(row.traceback)} if values else {})


def _value(text: str) -> Any:
    """Return what JSON text holds, or the text where it holds none."""
    try:
        return decode(text, object)
    except ValueError:
        return text


# -- for people --------------------------------------------------------------------------------------------------------


def lines_of_page(report: dict[str, Any], nothing: str) -> Iterator[str]:
    """Yield two or three lines for each job, and how to go on."""
    for row in report["jobs"]:
        yield from lines_of_row(row, report["read_at"])
    if report["next"]:
        yield f"There may be more: --after={report['next']}"
    elif not report["jobs"]:
        yield nothing


def lines_of_row(row: dict[str, Any], now: str) -> Iterator[str]:
    """Yield where a job stands, what it is, and what is special about it."""
    when = since(row["at"], now)
    if row["state"] in _LASTING:
        when = f"for {when.removesuffix(' ago')}"
    yield f"{row['id']}  {row['state']:<9}  {when}  {row['attempts']}/{row['max_attempts']}  {row['queue']}"
    remarks = [f"tenant {row['tenant']!r}"] if row["tenant"] else []
    remarks += [row["error"]] if row.get("error") else []
    remarks += ["acknowledged"] if row.get("acknowledged_at") else []
    remarks += ["to be cancelled"] if row.get("cancel_requested_at") else []
    yield from _call(row["task"], ", ".join(row["arguments"]))
    if remarks:
        yield f"    {', '.join(remarks)}"


def _call(task: str, names: str) -> Iterator[str]:
    """Yield a task with the names of its arguments; where there is no room for both, the task whole."""
    line = f"    {task}({names})"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"    {task}"
    yield f"        ({cut(names, WIDTH - 10)})"


def lines_of_found(report: dict[str, Any]) -> Iterator[str]:
    """Yield one line for each thing known of a job, and a few for each failure."""
    for name, value in report.items():
        if name != "failures" and value not in (None, "", []):
            yield f"{name:<20} {_told(name, value)}"
    for failure in report["failures"]:
        yield f"attempt {failure['attempt']}: {failure['kind']} {failure['error'] or ''}".rstrip()
        yield f"    began {failure['started_at']}, on {failure['worker']}"
        yield f"    failed {failure['failed_at']}"
        for text in (failure.get("message"), failure.get("traceback")):
            yield from (f"    {line}" for line in (text or "").splitlines())


def _told(name: str, value: Any) -> str:
    if name == "arguments":
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
