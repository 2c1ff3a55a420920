"""
A project with django-tasks-db and nothing else, so that it pays for nothing that is not its own.

Its connections persist: by Django's default its worker would make two new ones for every job.
"""

from typing import Any

import django

from testproject.settings import DATABASES as PROJECT_DATABASES
from testproject.settings import DEFAULT_AUTO_FIELD, SECRET_KEY, TIME_ZONE, USE_TZ

__all__ = ["DEFAULT_AUTO_FIELD", "SECRET_KEY", "TIME_ZONE", "USE_TZ"]

DATABASES: dict[str, Any] = {"default": {**PROJECT_DATABASES["default"], "CONN_MAX_AGE": None}}
DEBUG = False
INSTALLED_APPS = ["django_tasks_db"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["default"]}}
