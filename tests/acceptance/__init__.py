"""Whole workers, started as processes and treated as badly as production does."""
