"""Helpers for the tests of projects that use the queue."""
