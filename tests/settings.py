"""
Settings of the test suite.

``WORKQUEUE_TEST_DB`` chooses the database: ``sqlite`` (the default), or ``postgresql``, which is that of
``DATABASE_URL`` or else a throwaway server. A process started by a test uses these settings as well, and
``WORKQUEUE_TEST_NAME`` names the test database that it finds ready (see ``process_environment``).
"""

import atexit
import os
import shutil
import tempfile
from typing import Any

import django
from django.core.exceptions import ImproperlyConfigured

from testproject.localpg import ensure_database_url
from testproject.settings import *  # noqa: F403
from testproject.settings import INSTALLED_APPS, MIDDLEWARE, SQLITE_OPTIONS, database

TEST_DB = os.environ.get("WORKQUEUE_TEST_DB") or "sqlite"


def sqlite_folder() -> str:
    """Return the folder of the test databases: made by the first process, inherited by its children."""
    if "WORKQUEUE_TEST_FOLDER" not in os.environ:
        os.environ["WORKQUEUE_TEST_FOLDER"] = folder = tempfile.mkdtemp(prefix="dwq-tests-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return os.environ["WORKQUEUE_TEST_FOLDER"]


def sqlite_database() -> dict[str, Any]:
    """Return a database in a file: threads and processes cannot share one in memory."""
    folder = sqlite_folder()
    entry = database(f"sqlite:///{folder}/db.sqlite3")
    entry["OPTIONS"]["init_command"] = f"{SQLITE_OPTIONS['init_command']}; PRAGMA synchronous = OFF"
    entry["TEST"] = {"NAME": f"{folder}/test.sqlite3"}
    return entry


def postgresql_database() -> dict[str, Any]:
    """Return the database of ``DATABASE_URL`` or of a throwaway server; there is no third way."""
    entry = database(ensure_database_url())
    if not entry["ENGINE"].endswith("postgresql"):
        msg = f"WORKQUEUE_TEST_DB is 'postgresql', but DATABASE_URL is {entry['ENGINE']!r}. Unset one of them."
        raise ImproperlyConfigured(msg)
    return entry


def test_database() -> dict[str, Any]:
    """Return the database that ``WORKQUEUE_TEST_DB`` names."""
    makers = {"sqlite": sqlite_database, "postgresql": postgresql_database}
    if TEST_DB not in makers:
        msg = f"WORKQUEUE_TEST_DB is {TEST_DB!r}. Set it to one of: {', '.join(makers)}."
        raise ImproperlyConfigured(msg)
    entry = makers[TEST_DB]()
    entry["NAME"] = os.environ.get("WORKQUEUE_TEST_NAME") or entry["NAME"]
    return entry


DATABASES = {"default": test_database()}
INSTALLED_APPS = [*INSTALLED_APPS, "tests"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SECRET_KEY = "tests"

# Nothing of ours is inline: a browser would tell, and drop it.
SECURE_CSP = {"default-src": ["'self'"]}
has_own_policy = django.VERSION >= (6, 0)
POLICY = "django.middleware.csp.ContentSecurityPolicyMiddleware" if has_own_policy else "tests.browser.policy.strict"
MIDDLEWARE = [POLICY, *MIDDLEWARE]

# What the test project sets for its own demonstration must not leak into the suite.
WORKQUEUE: dict[str, Any] = {}
