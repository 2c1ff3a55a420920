"""The worker process: the only room with threads, signals and waiting."""
