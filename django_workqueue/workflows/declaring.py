"""Declaring workflows as chains, groups and chords of signatures, and checking them at the door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple, Self

from asgiref.sync import sync_to_async

from ..backend import WorkQueueBackend
from ..domain.contract import AnyTask
from ..domain.graphs import PlannedNode, Shape, number, refuse_depth
from ..domain.states import MemberKind
from ..exceptions import InvalidJobError
from ..lifecycle import workflow as flowing
from ..lifecycle.requests import request_for
from ..tasks import Signature, duration
from .handles import WorkflowHandle


class Travel(NamedTuple):
    """What goes along from member to member: each takes it over where its task says nothing of its own."""

    tenant: str = ""
    priority: int = 0
    metadata: Mapping[str, Any] = {}

    def into(self, task: AnyTask) -> Travel:
        """Return what holds for ``task``, and goes on from it. Its own tenant, priority and metadata come first."""
        tenant, metadata = getattr(task, "tenant", ""), getattr(task, "metadata", None)
        if not (tenant or metadata or task.priority):  # as for most: thousands of members share one
            return self
        return Travel(
            tenant=tenant or self.tenant,
            priority=task.priority or self.priority,
            metadata={**self.metadata, **(metadata or {})},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Tasks that depend on each other. Make it with ``chain``, ``group`` or ``chord``."""

    parts: tuple[Signature | Graph, ...] = ()
    tenant: str = ""
    priority: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    on_error: Signature | None = None
    retention: timedelta | None = None

    kind = MemberKind.CHAIN

    def using(
        self,
        *,
        tenant: str | None = None,
        priority: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        on_error: Signature | None = None,
        retention: timedelta | float | None = None,
    ) -> Self:
        """
        Return a graph that differs in what is given; ``metadata`` is added.

        ``tenant``, ``priority`` and ``metadata`` hold for the members that have none of their own. ``on_error`` and
        ``retention`` belong to the whole: they are refused on a graph inside another.
        """
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        if metadata is not None:
            given["metadata"] = {**self.metadata, **metadata}
        if retention is not None:
            given["retention"] = duration("retention", retention)
        return replace(self, **given)

    def enqueue(self, *, database: str | None = None) -> WorkflowHandle:
        """
        Store the whole graph in the caller's transaction, and start what waits for nothing.

        Everything is checked before anything is written. Raises what ``enqueue`` of its tasks would, and
        InvalidJobError for a graph that is too large or too deep, or has a member that may be suppressed as a
        duplicate.
        """
        nodes = number(_shape(self, Travel(), 0)[0])
        _link_all(nodes)
        row = flowing.enqueue(
            nodes,
            title=_title(self),
            tenant=self.tenant or next((node.payload.request.tenant for node in nodes if node.payload), ""),
            retention=self.retention,
            on_error=_callback(self),
            database=database,
        )
        return WorkflowHandle(row, database)

    async def aenqueue(self, *, database: str | None = None) -> WorkflowHandle:
        """See enqueue."""
        return await sync_to_async(self.enqueue)(database=database)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain(Graph):
    """Members that run one after the other. Its result is that of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Graph):
    """Members that run side by side. Its result is the list of theirs, in order."""

    kind = MemberKind.GROUP


Part = Signature | Graph


def chain(*parts: Part | Iterable[Part]) -> Chain:
    """Run these one after the other, each given the result of the one before. A list of them does as well."""
    return Chain(parts=_parts(parts))


def group(*parts: Part | Iterable[Part]) -> Group:
    """Run these side by side; their results come as a list in this order. An iterable of them does as well."""
    return Group(parts=_parts(parts))


def chord(members: Group | Iterable[Part], body: Part) -> Chain:
    """Run ``members`` side by side, then ``body``, given the list of their results, also where they are one or none."""
    return chain(members if isinstance(members, Group) else group(members), body)


class _Placed(NamedTuple):
    """A signature in its place."""

    signature: Signature
    travel: Travel


def _parts(parts: Sequence[Any]) -> tuple[Part, ...]:
    if len(parts) == 1 and isinstance(parts[0], Iterable):
        parts = tuple(parts[0])
    for part in parts:
        if not isinstance(part, Signature | Graph):
            raise InvalidJobError(
                f"{part!r} cannot be a member of a workflow. Pass task.signature(...), or a chain, group or chord."
            )
    return tuple(parts)


def _shape(part: Part, travel: Travel, depth: int) -> tuple[Shape, Travel]:
    """Return the shape of ``part``, so deep inside others, and what travels on from it."""
    refuse_depth(depth)
    if isinstance(part, Signature):
        on = travel.into(part.task)
        return Shape(MemberKind.TASK, payload=_Placed(part, on)), on
    if depth and (part.on_error is not None or part.retention is not None):
        raise InvalidJobError("on_error and retention belong to the whole workflow. Set them on the outermost graph.")
    inner = Travel(part.tenant or travel.tenant, part.priority or travel.priority, {**travel.metadata, **part.metadata})
    return (_group_shape if part.kind is MemberKind.GROUP else _chain_shape)(part, inner, depth + 1)


def _chain_shape(part: Graph, travel: Travel, depth: int) -> tuple[Shape, Travel]:
    shapes = []
    for link in part.parts:
        shape, travel = _shape(link, travel, depth)
        shapes.append(shape)
    return Shape(part.kind, shapes), travel


def _group_shape(part: Graph, travel: Travel, depth: int) -> tuple[Shape, Travel]:
    """Return the shape of a group. What travels on from it is what all its members have in common."""
    pairs = [_shape(member, travel, depth) for member in part.parts]
    return Shape(part.kind, [shape for shape, _ in pairs]), _common([on for _, on in pairs]) or travel


def _common(travels: Sequence[Travel]) -> Travel | None:
    if not travels:
        return None
    first, *rest = travels
    return Travel(
        first.tenant if all(each.tenant == first.tenant for each in rest) else "",
        first.priority if all(each.priority == first.priority for each in rest) else 0,
        {
            name: value
            for name, value in first.metadata.items()
            if all(name in each.metadata and each.metadata[name] == value for each in rest)
        },
    )


def _link_all(nodes: Sequence[PlannedNode]) -> None:
    """Turn the signatures of all tasks into requests. A task that many members share is checked once."""
    checked: set[int] = set()
    for node in nodes:
        if node.kind == MemberKind.TASK:
            placed: _Placed = node.payload
            if id(placed.signature.task) not in checked:
                _check(placed.signature.task)
                checked.add(id(placed.signature.task))
            node.payload = _link(placed, has_input=node.has_input)


def _check(task: AnyTask) -> None:
    backend = task.get_backend()
    if not isinstance(backend, WorkQueueBackend):
        raise InvalidJobError(
            f"{task.module_path} goes to the backend {task.backend!r}, a {type(backend).__name__}. "
            "Workflows are stored in the queue: let TASKS name a WorkQueueBackend there."
        )
    backend.validate_task(task)
    if getattr(task, "dedupe_key", None) is not None:
        raise InvalidJobError(
            f"{task.module_path} has a dedupe_key and is to be a member of a workflow. A job that was there before "
            "would take its place, and its end would be another's: use a task without a key."
        )


def _link(placed: _Placed, *, has_input: bool) -> flowing.Link:
    signature, travel = placed
    takes_input = has_input and signature.takes_previous
    if takes_input and callable(getattr(signature.task, "concurrency_key", None)):
        raise InvalidJobError(
            f"The concurrency_key of {signature.task.module_path} depends on its arguments, and the first of them is "
            "a result that is not there yet. Give the key by using(concurrency_key=...)."
        )
    fitted = (None, *signature.args) if takes_input else signature.args
    request = request_for(signature.task, fitted, signature.kwargs)
    return flowing.Link(
        request._replace(args=signature.args, tenant=travel.tenant, priority=travel.priority, metadata=travel.metadata),
        takes_input=takes_input,
    )


def _callback(graph: Graph) -> flowing.Link | None:
    if graph.on_error is None:
        return None
    if not isinstance(graph.on_error, Signature):
        raise InvalidJobError(f"on_error is {graph.on_error!r}. Pass task.signature(...).")
    _check(graph.on_error.task)
    travel = Travel(graph.tenant, graph.priority, graph.metadata).into(graph.on_error.task)
    return _link(_Placed(graph.on_error, travel), has_input=True)


def _title(graph: Graph) -> str:
    """Return a few words by which a person knows the workflow again."""
    names = [part.task.name if isinstance(part, Signature) else part.kind.value for part in graph.parts[:3]]
    return f"{graph.kind.value}({', '.join([*names, *(['...'] if len(graph.parts) > 3 else [])])})"
