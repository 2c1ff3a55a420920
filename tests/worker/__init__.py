"""The worker's parts, each alone and within this process."""
