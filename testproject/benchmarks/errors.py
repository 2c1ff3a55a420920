"""What can end a benchmark before its time."""


class BenchmarkError(Exception):
    """A run that cannot be made, or whose figures would be worth nothing."""
