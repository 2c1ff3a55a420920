"""Moments with a zone, as rules need them, and as this project's rows hold them."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings
from django.utils import timezone


def aware(moment: datetime) -> datetime:
    """Return ``moment`` in UTC. One without a zone, as rows have it where USE_TZ is False, is in the project's."""
    return (moment if timezone.is_aware(moment) else timezone.make_aware(moment)).astimezone(UTC)


def stored(moment: datetime) -> datetime:
    """Return ``moment`` as a column of this project takes it: with a zone, or without where USE_TZ is False."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)
