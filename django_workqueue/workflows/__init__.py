"""Workflows: jobs that follow from each other."""

from __future__ import annotations

from ..tasks import Signature
from .declaring import Chain, Graph, Group, chain, chord, group
from .handles import MemberView, WorkflowHandle, get_workflow

__all__ = [
    "Chain",
    "Graph",
    "Group",
    "MemberView",
    "Signature",
    "WorkflowHandle",
    "chain",
    "chord",
    "get_workflow",
    "group",
]
