"""The rules of graphs against a simple interpreter: whatever the graph and the order of ends, the same results."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_workqueue import chain, group
from django_workqueue.domain.graphs import PlannedBook, Progress, Shape, number, spliced
from django_workqueue.domain.states import MemberKind, MemberState
from django_workqueue.testing import drain

from . import sample_tasks

TASK, CHAIN, GROUP = MemberKind.TASK, MemberKind.CHAIN, MemberKind.GROUP

tasks = st.builds(lambda name: Shape(TASK, payload=name), st.sampled_from("abcdefgh"))
graphs = st.recursive(
    tasks,
    lambda parts: (
        st.builds(lambda inside: Shape(CHAIN, inside), st.lists(parts, min_size=1, max_size=4))
        | st.builds(lambda inside: Shape(GROUP, inside), st.lists(parts, max_size=4))
    ),
    max_leaves=25,
)


def call(name, given):
    """Return what a task of this name returns: itself, and what it was given."""
    return [name] if given is None else [name, given]


def interpret(shape, given=None):
    """Run a graph by itself, in the plainest way."""
    if shape.kind is TASK:
        return call(shape.payload, given)
    if shape.kind is GROUP:
        return [interpret(part, given) for part in shape.parts]
    for part in shape.parts:
        given = interpret(part, given)
    return given


class Run:
    """A graph that is carried on from outside."""

    def __init__(self, shape):
        self.nodes = number(shape)
        self.waiting = {}
        self.starts = []
        self.progress = self.carry_on(lambda progress: progress.begin(self.nodes[0]))

    def carry_on(self, step):
        """Take a step and note what it started."""
        progress = Progress(PlannedBook(self.nodes))
        step(progress)
        for node, text in progress.started:
            self.starts.append(node.position)
            self.waiting[node.position] = text
        self.progress = progress
        return progress

    def end(self, positions):
        """Let these tasks end together."""
        ended = []
        for position in positions:
            text = self.waiting.pop(position)
            node = self.nodes[position]
            ended.append((node, json.dumps(call(node.payload, None if text is None else json.loads(text)))))
        self.carry_on(lambda progress: progress.end(ended))


@given(graphs, st.data())
def test_graph_gives_what_the_interpreter_gives(shape, data):
    """Tasks end in any order and in any batches: each starts once, and the result is the same."""
    run = Run(shape)
    while run.waiting:
        some = data.draw(st.lists(st.sampled_from(sorted(run.waiting)), min_size=1, unique=True))
        run.end(some)

    assert json.loads(run.progress.result) == interpret(shape)
    assert sorted(run.starts) == [node.position for node in run.nodes if node.kind == TASK]
    assert {node.state for node in run.nodes} == {MemberState.DONE}


@given(graphs)
def test_nodes_inside_a_node_are_those_behind_it(shape):
    """Positions tell the whole tree: parents come first, and ``last`` closes what is inside."""
    nodes = number(shape)

    for node in nodes[1:]:
        parent = nodes[node.parent]
        assert parent.position < node.position <= node.last <= parent.last
    assert nodes[0].last == len(nodes) - 1


@given(graphs)
def test_only_what_follows_something_has_an_input(shape):
    """What the door checks arguments by is what comes: an input where one is foreseen, and nowhere else."""
    run = Run(shape)
    foreseen = {node.position: node.has_input for node in run.nodes}
    seen = dict(run.waiting)
    while run.waiting:
        run.end(sorted(run.waiting))
        seen |= run.waiting

    assert {position: text is not None for position, text in seen.items()} == {at: foreseen[at] for at in seen}


@pytest.mark.parametrize(
    ("args", "given", "whole"), [("[]", "null", [None]), ("[1,[2]]", '{"a":"]"}', [{"a": "]"}, 1, [2]])]
)
def test_input_goes_in_front_of_the_arguments(args, given, whole):
    """As text: what a task returned is not decoded and encoded again on its way."""
    assert json.loads(spliced(args, given)) == whole


def part_of(shape):
    """Return the graph of signatures that a shape stands for."""
    if shape.kind is TASK:
        return sample_tasks.call.signature(shape.payload)
    parts = [part_of(part) for part in shape.parts]
    return chain(parts) if shape.kind is CHAIN else group(parts)


@pytest.mark.django_db
@settings(max_examples=15, deadline=None)
@given(graphs)
def test_stored_graph_gives_what_the_interpreter_gives(shape):
    """Through the database, with jobs, claims and settlements in between."""
    handle = chain(part_of(shape)).enqueue()
    drain()

    handle.refresh()
    assert handle.result == interpret(shape)
