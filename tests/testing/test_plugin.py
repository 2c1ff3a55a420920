"""The helpers are imported when they are used, and the plugin is silent where there is no Django."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import django_workqueue.testing

ROOT = Path(__file__).resolve().parents[2]

WITHOUT_DJANGO = """
import sys

def test_nothing_of_django_is_loaded():
    assert not [name for name in sys.modules if name.split(".")[0] == "django"]
"""


def test_plugin_is_silent_without_settings(tmp_path):
    """A test run that has nothing to do with Django, in an environment that has the plugin, is left alone."""
    (tmp_path / "test_it.py").write_text(WITHOUT_DJANGO)
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "django_workqueue.testing.pytest_plugin"]

    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_plugin_explains_its_fixtures(tmp_path):
    """``pytest --fixtures`` is where users look."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "--fixtures", "-p", "django_workqueue.testing.pytest_plugin"]

    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)

    assert "workqueue -- " in done.stdout
    assert "workqueue_worker -- " in done.stdout


@pytest.mark.parametrize("name", django_workqueue.testing.__all__)
def test_every_name_can_be_imported(name):
    """What is announced is there."""
    assert getattr(django_workqueue.testing, name) is not None


def test_unknown_name_is_an_attribute_error():
    """As from any module."""
    with pytest.raises(AttributeError, match="no attribute 'drian'"):
        django_workqueue.testing.drian  # noqa: B018 - looking it up is the test
