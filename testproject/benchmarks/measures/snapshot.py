"""
``snapshot.*``: whether a drain slows down while a dump runs.

Another session holds a snapshot from before the start, so that nothing of 300,000 settled jobs can be cleaned away.
The rate of the last fifth of the jobs against that of the first, with one tenant and with a hundred.
"""

from __future__ import annotations

from ..bench import Bench
from ..contestants import Ours
from ..drains import drain
from ..figures import Figure, Readings, Trial, at_least

JOBS = 300_000
FIFTH = 0.2


def of(name: str, tenants: int) -> Trial:
    """Return the trial with so many tenants."""

    def run(bench: Bench) -> Readings:
        timeline = drain(bench, Ours(), bench.sized(JOBS, least=1_000), tenants=tenants, snapshot=True)
        return {f"{name}_first_fifth": timeline.rate(0, FIFTH), f"{name}_last_fifth": timeline.rate(1 - FIFTH, 1)}

    return Trial(name, run, (f"{name}_first_fifth", f"{name}_last_fifth"))


TRIALS = (of("snapshot.one_tenant", 1), of("snapshot.hundred_tenants", 100))

FIGURES = (
    Figure(
        name="snapshot.last_fifth_over_first",
        over="snapshot.one_tenant_last_fifth",
        under="snapshot.one_tenant_first_fifth",
        target=at_least(0.9),
    ),
    Figure(
        name="snapshot.last_fifth_over_first_of_hundred_tenants",
        over="snapshot.hundred_tenants_last_fifth",
        under="snapshot.hundred_tenants_first_fifth",
        target=at_least(0.9),
    ),
)
