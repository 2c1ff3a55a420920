"""Both stores of the database under test are held to every guarantee."""

from __future__ import annotations

from django.test import TestCase

from django_workqueue.store import store_for
from django_workqueue.store.orm import OrmStore
from django_workqueue.testing import StoreConformance


class TestVendorStore(StoreConformance, TestCase):
    """The store that workers use on this database."""

    def make_store(self):
        """Return what the settings choose."""
        return store_for("default")


class TestOrmStore(StoreConformance, TestCase):
    """The plain store, which must be right on any database."""

    def make_store(self):
        """Return the store that knows no vendor."""
        return OrmStore("default")
