"""The test suite; a Django app too, for the models and tasks that tests need."""
