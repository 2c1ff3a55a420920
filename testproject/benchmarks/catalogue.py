"""All trials and figures there are, and the choice among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .errors import BenchmarkError
from .figures import Figure, Trial
from .measures import backlog, cost, drain, enqueue, history, latency, screens, snapshot, sqlite, tenants

FAMILIES = (drain, enqueue, latency, backlog, tenants, snapshot, history, cost, screens, sqlite)
TRIALS: tuple[Trial, ...] = tuple(trial for family in FAMILIES for trial in family.TRIALS)
FIGURES: tuple[Figure, ...] = tuple(figure for family in FAMILIES for figure in family.FIGURES)


def choose(names: Collection[str] = (), *, peers: bool = False) -> tuple[list[Figure], list[Trial]]:
    """
    Return the figures of these names, families or beginnings of names, all without any, and the trials they need.

    Figures about other queues are left out without ``peers``. Raises BenchmarkError for a name that fits nothing.
    """
    readable = {reading for trial in TRIALS if peers or not trial.peers for reading in trial.gives}
    figures = [figure for figure in FIGURES if readable.issuperset(figure.readings)]
    for name in names:
        if not any(_fits(figure, name) for figure in figures):
            known = ", ".join(figure.name for figure in FIGURES)
            raise BenchmarkError(f"Nothing is called {name!r} here (other queues need --peers). Known: {known}.")
    chosen = [figure for figure in figures if not names or any(_fits(figure, name) for name in names)]
    return chosen, trials_for(chosen)


def trials_for(figures: Sequence[Figure]) -> list[Trial]:
    """Return the trials that give the readings of ``figures``, in their order."""
    needed = {reading for figure in figures for reading in figure.readings}
    return [trial for trial in TRIALS if not needed.isdisjoint(trial.gives)]


def _fits(figure: Figure, name: str) -> bool:
    return figure.name == name or figure.name.startswith(f"{name}.")
