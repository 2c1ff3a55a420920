"""The verbs of a job's life, on a real database."""
