"""The app: registers the checks and imports each app's ``tasks`` module. Nothing else."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class WorkQueueConfig(AppConfig):
    """``django_workqueue`` in INSTALLED_APPS."""

    name = "django_workqueue"
    label = "django_workqueue"
    verbose_name = _("Work queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks and import each installed app's tasks."""
        from . import checks  # noqa: F401, PLC0415 - importing registers them, and needs the app registry

        # Workers must know every task by name, also those that no view has imported yet.
        autodiscover_modules("tasks")
