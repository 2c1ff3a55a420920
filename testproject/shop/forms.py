"""What a customer fills in."""

from __future__ import annotations

from django import forms

from .models import Order


class OrderForm(forms.ModelForm):  # type: ignore[type-arg] # no generic at run time
    """An order and the card that pays for it."""

    card = forms.CharField(max_length=19)

    class Meta:
        model = Order
        fields = ("shop", "email", "total")
