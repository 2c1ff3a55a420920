"""Shops to buy from, and customers who place orders through the shop's own view."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple

from django.test import Client
from django.urls import reverse

from ..models import Shop
from ..payments import DECLINED_CARD, GOOD_CARD
from .endpoint import Endpoint
from .waiting import DemoError

#: Name -> how many of 13 orders go there. The last one's server refuses every delivery.
SHOPS = {"Bakery": 5, "Florist": 4, "Books": 3, "Hardware": 1}
REFUSING = "Hardware"
DECLINED_ONE_IN = 10


class Accepted(NamedTuple):
    """An order that the view answered with 201: from here on it and both its jobs are promised."""

    order: int
    shop: str
    receipt: str
    webhook: str


@dataclass
class Customers:
    """Place orders in ``shops``: many accepted, some declined after their jobs were enqueued."""

    shops: list[Shop]
    accepted: list[Accepted] = field(default_factory=list)
    declined: int = 0
    _client: Client = field(default_factory=lambda: Client(SERVER_NAME="localhost"))
    _lots: random.Random = field(default_factory=lambda: random.Random(1))

    @property
    def count(self) -> int:
        """How many orders were placed so far."""
        return len(self.accepted) + self.declined

    def place(self, count: int) -> None:
        """Place ``count`` orders, one after the other."""
        with _declines_unlogged():
            for shop in self._lots.choices(self.shops, weights=list(SHOPS.values()), k=count):
                self._place_one(shop)

    def _place_one(self, shop: Shop) -> None:
        declined = self._lots.randrange(DECLINED_ONE_IN) == 0
        answer = self._client.post(reverse("shop:place_order"), self._form(shop, declined=declined))
        expected = HTTPStatus.PAYMENT_REQUIRED if declined else HTTPStatus.CREATED
        if answer.status_code != expected:
            raise DemoError(f"An order was answered {answer.status_code}, not {expected:d}: {answer.content!r}")
        if declined:
            self.declined += 1
        else:
            self._note(shop, answer.json())

    def _form(self, shop: Shop, *, declined: bool) -> dict[str, Any]:
        return {
            "shop": shop.pk,
            "email": f"customer{self.count + 1}@example.com",
            "total": f"{self._lots.randrange(100, 20_000) / 100:.2f}",
            "card": DECLINED_CARD if declined else GOOD_CARD,
        }

    def _note(self, shop: Shop, answer: dict[str, Any]) -> None:
        receipt, webhook = answer["jobs"]
        self.accepted.append(Accepted(answer["order"], shop.slug, receipt, webhook))


@contextmanager
def _declines_unlogged() -> Iterator[None]:
    """Keep Django from warning of every 402: here, declined cards are part of the play."""
    logger = logging.getLogger("django.request")
    logger.addFilter(_is_no_decline)
    try:
        yield
    finally:
        logger.removeFilter(_is_no_decline)


def _is_no_decline(record: logging.LogRecord) -> bool:
    return getattr(record, "status_code", None) != HTTPStatus.PAYMENT_REQUIRED


def open_shops(run: str, endpoint: Endpoint) -> list[Shop]:
    """
    Store new shops whose servers are at ``endpoint``.

    Every run opens its own, so that what earlier runs left stays as it was, and out of the books.
    """
    return [_open(name, f"{name.lower()}-{run}", endpoint) for name in SHOPS]


def _open(name: str, slug: str, endpoint: Endpoint) -> Shop:
    url = endpoint.url(slug, refuses=name == REFUSING)
    return Shop.objects.create(name=f"{name} {slug.rpartition('-')[2]}", slug=slug, webhook_url=url)
