"""A Django project that uses every feature of django_workqueue."""
