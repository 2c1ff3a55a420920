"""
Settings of the worker processes that acceptance tests start.

``ACCEPTANCE_WORKQUEUE`` is the settings dict as JSON, on top of ``QUICK``: leases that a test can wait for.
"""

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

QUICK = {"LEASE": 3, "REAP_INTERVAL": 0.5, "POLL_INTERVAL": 0.3, "BACKOFF": 0.2, "JITTER": 0}

WORKQUEUE = QUICK | json.loads(os.environ.get("ACCEPTANCE_WORKQUEUE", "{}"))
if "ACCEPTANCE_PORT" in os.environ:  # a proxy stands before the server
    DATABASES["default"].update(HOST="127.0.0.1", PORT=os.environ["ACCEPTANCE_PORT"])

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{levelname} {name} {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
