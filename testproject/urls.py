"""The pages of the test project."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("workqueue/", include("django_workqueue.urls")),
    path("", include("testproject.shop.urls")),
]
