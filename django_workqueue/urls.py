"""The addresses for monitors. Include them under a path of your own."""

from __future__ import annotations

from django.urls import path

from . import views

app_name = "django_workqueue"

urlpatterns = [
    path("metrics", views.prometheus, name="metrics"),
    path("metrics.json", views.numbers, name="metrics_json"),
]
