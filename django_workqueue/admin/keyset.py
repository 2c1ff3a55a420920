"""Places in an ordered table, as the lists use them."""

from ..lifecycle.keyset import Keyset, Position

__all__ = ["Keyset", "Position"]
