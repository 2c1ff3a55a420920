"""The shop of the test project, and its demonstration."""
