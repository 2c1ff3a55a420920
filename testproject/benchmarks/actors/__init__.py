"""The measured processes: ``python -m testproject.benchmarks.actors NAME OPTIONS``."""
