"""Set Django up and become one of the actors."""

from __future__ import annotations

import sys
from importlib import import_module

import django

if __name__ == "__main__":
    django.setup()
    _, name, *arguments = sys.argv
    import_module(f"{__package__}.{name}").main(arguments)
