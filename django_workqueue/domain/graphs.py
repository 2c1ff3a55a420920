"""
The graph of a workflow: how it is numbered, and what follows when one of its nodes has ended.

A graph is a tree. A chain runs its nodes one after the other and gives each the result of the one before; a group runs
its nodes side by side and has the list of their results. A chord is a chain of a group and its body. Results are JSON
text throughout: what one task returned goes into the next one's arguments as it was encoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ..exceptions import InvalidJobError
from .states import MemberKind, MemberState

MOST_MEMBERS = 10_000
"""Nodes of one workflow, besides the workflow itself: tasks, chains and groups."""
MOST_DEPTH = 20
"""How deep chains and groups may be nested."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A graph as it is asked for. ``payload`` is what a task stands for; it is not looked at here."""

    kind: MemberKind
    parts: Sequence[Shape] = ()
    payload: Any = None


class Node(Protocol):
    """One numbered node. Rows of members are such nodes."""

    position: int
    parent: int | None
    last: int
    """The last position inside this node; its own, when nothing is inside."""
    kind: str
    state: str
    result: str | None


@dataclass(slots=True)
class PlannedNode:
    """A node of a graph that is not stored yet."""

    position: int
    parent: int | None
    kind: str
    payload: Any
    has_input: bool
    """Whether a result comes to it from a node before."""
    last: int = 0
    state: str = MemberState.WAITING
    result: str | None = None


def number(shape: Shape) -> list[PlannedNode]:
    """Return the nodes of ``shape`` by position. Raises InvalidJobError when it cannot be a workflow."""
    nodes: list[PlannedNode] = []
    _number(shape, None, 0, nodes, has_input=False)
    return nodes


def _number(shape: Shape, parent: int | None, depth: int, nodes: list[PlannedNode], *, has_input: bool) -> None:
    _refuse_excess(shape, len(nodes))
    refuse_depth(depth)
    node = PlannedNode(len(nodes), parent, shape.kind, shape.payload, has_input)
    nodes.append(node)
    for place, part in enumerate(shape.parts):
        follows = has_input or (shape.kind is MemberKind.CHAIN and place > 0)
        _number(part, node.position, depth + 1, nodes, has_input=follows)
    node.last = len(nodes) - 1


def refuse_depth(depth: int) -> None:
    """Raise InvalidJobError for a graph so deep inside others."""
    if depth > MOST_DEPTH:
        raise InvalidJobError(f"The workflow is nested more than {MOST_DEPTH} levels deep. Flatten it.")


def _refuse_excess(shape: Shape, count: int) -> None:
    if shape.kind is MemberKind.CHAIN and not shape.parts:
        raise InvalidJobError("A chain of the workflow has no links. Give it at least one; only a group may be empty.")
    if count > MOST_MEMBERS:
        raise InvalidJobError(
            f"The workflow has more than {MOST_MEMBERS:,} members. Let its tasks enqueue workflows of their own."
        )


N = TypeVar("N", bound=Node)


class Book(Protocol[N]):
    """Where nodes are looked up, and changes to them are noted."""

    def at(self, positions: Collection[int]) -> Mapping[int, N]:
        """Return the nodes at these positions."""

    def inside(self, node: N) -> Sequence[N]:
        """Return the nodes whose parent ``node`` is, in order."""

    def complete(self, groups: Collection[int]) -> Iterable[int]:
        """Return those of these groups in which every node is done."""

    def results(self, group: N) -> Sequence[str]:
        """Return the results inside a complete group, in order."""

    def changed(self, node: N) -> None:
        """Note that the state or the result of ``node`` is another."""


class Progress(Generic[N]):
    """
    Carries a graph on: from its root at the beginning, or from tasks that have ended.

    ``started`` collects the tasks whose turn has come, each with the JSON text that it is given, None where nothing
    came before. ``result`` is that of the whole, once it has one. Nothing is counted: a node is done or it is not, so
    that a task which is reported twice changes nothing.
    """

    def __init__(self, book: Book[N]) -> None:
        self._book = book
        self._started: list[tuple[N, str | None]] = []
        self.result: str | None = None

    @property
    def started(self) -> list[tuple[N, str | None]]:
        """The tasks to enqueue, in order."""
        return sorted(self._started, key=lambda entry: entry[0].position)

    def begin(self, root: N) -> None:
        """Start the whole graph."""
        self.end(self._start([(root, None)]))

    def end(self, ended: Iterable[tuple[N, str]]) -> None:
        """Note the results of these nodes, and carry on as far as that leads."""
        now = list(ended)
        while now:
            now = self._follow(now)

    def _start(self, starts: Iterable[tuple[N, str | None]]) -> list[tuple[N, str]]:
        """Make these nodes active, with the first of what is inside them, and return the groups without any."""
        queue, ended = deque(starts), []
        while queue:
            node, given = queue.popleft()
            if node.state == MemberState.CANCELLED:  # before its turn: its workflow has failed for that
                continue
            node.state = MemberState.ACTIVE
            self._book.changed(node)
            if node.kind == MemberKind.TASK:
                self._started.append((node, given))
                continue
            inside = self._book.inside(node)
            queue.extend((each, given) for each in (inside[:1] if node.kind == MemberKind.CHAIN else inside))
            if not inside:
                ended.append((node, "[]"))
        return ended

    def _follow(self, ended: Sequence[tuple[N, str]]) -> list[tuple[N, str]]:
        """Mark nodes done, start what comes next, and return the chains and groups that ended by that."""
        parents = self._book.at({node.parent for node, _ in ended if node.parent is not None})
        links, groups = [], set()
        for node, result in ended:
            parent = None if node.parent is None else parents[node.parent]
            self._mark(node, result, parent)
            if parent is None:
                self.result = result
            elif parent.kind == MemberKind.GROUP:
                groups.add(parent.position)
            else:
                links.append((node, result, parent))
        return [*self._next_links(links), *self._gathered(groups, parents)]

    def _mark(self, node: N, result: str, parent: N | None) -> None:
        node.state = MemberState.DONE
        # Of chains and groups only what a group must gather is kept: the rest is a copy of what is inside.
        if node.kind == MemberKind.TASK or (parent is not None and parent.kind == MemberKind.GROUP):
            node.result = result
        self._book.changed(node)

    def _next_links(self, links: Sequence[tuple[N, str, N]]) -> list[tuple[N, str]]:
        """Start the links behind these, and return the chains that have no more and the groups without members."""
        followed = [(node.last + 1, result) for node, result, chain in links if node.last < chain.last]
        nexts = self._book.at({position for position, _ in followed})
        over = [(chain, result) for node, result, chain in links if node.last == chain.last]
        return over + self._start([(nexts[position], result) for position, result in followed])

    def _gathered(self, groups: Collection[int], parents: Mapping[int, N]) -> list[tuple[N, str]]:
        """Return those of these groups that are complete, with the lists of their results."""
        complete = sorted(self._book.complete(groups)) if groups else ()
        return [(parents[group], f"[{','.join(self._book.results(parents[group]))}]") for group in complete]


class PlannedBook:
    """The nodes of a graph that is not stored yet."""

    def __init__(self, nodes: Sequence[PlannedNode]) -> None:
        self._nodes = nodes

    def at(self, positions: Collection[int]) -> Mapping[int, PlannedNode]:
        """See Book.at."""
        return {position: self._nodes[position] for position in positions}

    def inside(self, node: PlannedNode) -> Sequence[PlannedNode]:
        """See Book.inside."""
        return list(direct(self._nodes, node))

    def complete(self, groups: Collection[int]) -> Iterable[int]:
        """See Book.complete."""
        return [
            group for group in groups if all(each.state == MemberState.DONE for each in self.inside(self._nodes[group]))
        ]

    def results(self, group: PlannedNode) -> Sequence[str]:
        """See Book.results."""
        return [each.result or "null" for each in self.inside(group)]

    def changed(self, node: PlannedNode) -> None:
        """See Book.changed. The nodes themselves are what is stored later."""


def direct(nodes: Sequence[N] | Mapping[int, N], node: N) -> Iterator[N]:
    """Yield the nodes directly inside ``node``, of nodes by position: each is behind the end of the one before."""
    position = node.position + 1
    while position <= node.last:
        yield nodes[position]
        position = nodes[position].last + 1


def spliced(args: str, given: str) -> str:
    """Return the JSON list ``args`` with the JSON value ``given`` in front."""
    return f"[{given}]" if args == "[]" else f"[{given},{args[1:]}"
