"""Shops and orders in the admin. Repair a webhook address here before requeueing its dead letters."""

from __future__ import annotations

from django.contrib import admin

from .models import Order, Shop


@admin.register(Shop)
class ShopAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # no generic at run time
    """Sellers."""

    list_display = ("name", "slug", "webhook_url")
    search_fields = ("name", "slug")


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # no generic at run time
    """Orders."""

    list_display = ("id", "shop", "email", "total", "placed_at")
    list_select_related = ("shop",)
    search_fields = ("email",)
