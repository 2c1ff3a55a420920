"""All statements together, in the ORM: right on any database."""

from __future__ import annotations

from .cancel import Cancelling
from .dead_groups import Grouping
from .moving import Moving
from .operate import Operating
from .reap import Reaping
from .schedules import Scheduling
from .survey import Surveying


class OrmStore(Surveying, Reaping, Moving, Cancelling, Operating, Scheduling, Grouping):
    """The whole interface of a store. Vendors' stores replace what must be fast or differs there."""
