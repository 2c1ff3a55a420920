"""Management commands of the benchmarks."""
