"""Pure rules of the queue: no models, no database, no threads."""
