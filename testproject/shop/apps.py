"""The app."""

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """``testproject.shop`` in INSTALLED_APPS."""

    name = "testproject.shop"
    label = "shop"
