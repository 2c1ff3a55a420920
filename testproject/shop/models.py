"""What the shop keeps."""

from __future__ import annotations

from typing import Any

from django.core.validators import URLValidator
from django.db import models


class Shop(models.Model):
    """A seller. ``slug`` is also the tenant of the seller's jobs, so that none waits behind a busy one."""

    name = models.CharField(max_length=80)
    slug = models.SlugField(unique=True)
    webhook_url = models.CharField(
        max_length=200,
        validators=[URLValidator(schemes=["http", "https"])],
        help_text="Where each new order is posted to.",
    )

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    """What one customer bought. The row exists only if the payment went through."""

    shop = models.ForeignKey(Shop, on_delete=models.PROTECT, related_name="orders")
    email = models.EmailField()
    total = models.DecimalField(max_digits=8, decimal_places=2)
    placed_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"Order {self.pk}"

    def as_webhook(self) -> dict[str, Any]:
        """Return what the seller's system is told."""
        return {"order": self.pk, "shop": self.shop.slug, "email": self.email, "total": str(self.total)}
