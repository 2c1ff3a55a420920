"""``tenants.*``: the same backlog of one tenant, of a hundred and of ten thousand, whose jobs came in turn."""

from __future__ import annotations

from ..bench import Bench
from ..contestants import Ours
from ..drains import drain
from ..figures import Figure, Readings, Trial, at_least

JOBS = 100_000
LEAST_JOBS_EACH = 10


def of(name: str, tenants: int) -> Trial:
    """Return the trial with so many tenants, or as many as have ten jobs each."""

    def run(bench: Bench) -> Readings:
        jobs = bench.sized(JOBS)
        return {name: drain(bench, Ours(), jobs, tenants=min(tenants, jobs // LEAST_JOBS_EACH)).rate()}

    return Trial(name, run, (name,))


TRIALS = (
    of("tenants.one", 1),
    of("tenants.hundred", 100),
    of("tenants.ten_thousand", 10_000),
)

FIGURES = (
    Figure(name="tenants.hundred_over_one", over="tenants.hundred", under="tenants.one", target=at_least(0.65)),
    Figure(
        name="tenants.ten_thousand_over_one",
        over="tenants.ten_thousand",
        under="tenants.one",
        target=at_least(0.6),
    ),
)
