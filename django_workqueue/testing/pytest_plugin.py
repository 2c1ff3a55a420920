"""pytest fixtures of the queue. Imports nothing of Django: it is loaded before the settings are."""
