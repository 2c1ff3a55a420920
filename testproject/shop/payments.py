"""A payment provider that never takes money, and declines one well-known card."""

from __future__ import annotations

from decimal import Decimal

GOOD_CARD = "4242424242424242"
DECLINED_CARD = "4000000000000002"


class CardDeclinedError(Exception):
    """The bank said no; nothing was charged."""


def charge(card: str, amount: Decimal) -> None:
    """Charge ``amount`` to ``card``. Raises CardDeclinedError for ``DECLINED_CARD``."""
    if card == DECLINED_CARD:
        raise CardDeclinedError(f"The card ending in {card[-4:]!r} was declined for {amount}. Try another card.")
