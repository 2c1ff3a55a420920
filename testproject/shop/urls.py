"""The shop's addresses."""

from django.urls import path

from . import views

app_name = "shop"
urlpatterns = [
    path("orders/", views.place_order, name="place_order"),
    path("webhook/", views.receive_webhook, name="receive_webhook"),
]
