"""A durable work queue that lives in the Django project's own database."""

__version__ = "0.1.0.dev0"
