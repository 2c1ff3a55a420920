"""Settings of the test project, read from the environment or from a ``.env`` file beside ``manage.py``."""

from pathlib import Path
from typing import Any

import django
import environ

BASE_DIR = Path(__file__).resolve().parent

env = environ.Env()
if (BASE_DIR / ".env").exists():
    env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=True)
SECRET_KEY = env.str("SECRET_KEY", default="only-for-the-demo-on-your-own-machine")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])

#: Without IMMEDIATE, two transactions that read before they write fail at once with "database is locked",
#: whatever the timeout; without WAL, readers and the writer wait for each other.
SQLITE_OPTIONS = {
    "init_command": "PRAGMA journal_mode = WAL",
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
}


def database(url: str) -> dict[str, Any]:
    """Return the entry of ``DATABASES`` for ``url``, with the options that a queue on SQLite needs."""
    entry: dict[str, Any] = env.db_url_config(url)
    if entry["ENGINE"].endswith("sqlite3"):
        entry["OPTIONS"] = {**SQLITE_OPTIONS, **entry.get("OPTIONS", {})}
    return entry


DATABASES = {"default": database(env.str("DATABASE_URL", default=f"sqlite:///{BASE_DIR / 'db.sqlite3'}"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_workqueue",
    "testproject.shop",
    "testproject.benchmarks",
]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "testproject.urls"
STATIC_URL = "static/"
TEMPLATES = [
    {
        "APP_DIRS": True,
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
TIME_ZONE = "UTC"
USE_TZ = True

TASKS = {"default": {"BACKEND": "django_workqueue.backend.WorkQueueBackend", "QUEUES": []}}
WORKQUEUE = env.json("WORKQUEUE", default={})

#: Where e-mails are written instead of being sent, one file each.
OUTBOX = Path(env.str("OUTBOX", default=str(BASE_DIR / "outbox")))
if django.VERSION < (6, 1):
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = OUTBOX
else:
    MAILERS = {
        "default": {
            "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
            "OPTIONS": {"file_path": OUTBOX},
        },
    }
