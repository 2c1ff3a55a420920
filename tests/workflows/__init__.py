"""Workflows: chains, groups and chords, and what becomes of them when their members end, die or run twice."""
