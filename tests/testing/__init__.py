"""The helpers for users' tests, and the suite of guarantees."""
