"""The statements, on a real database."""
