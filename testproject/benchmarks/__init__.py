"""Runs that are too long for the test suite, and what they share."""
