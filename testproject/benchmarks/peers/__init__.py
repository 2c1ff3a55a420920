"""Other queues on the same server: they need the packages of the dependency group ``bench``."""
