"""Reading the files for deployment that the documentation shows: what they start, and what they promise it."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from typing import Any

import yaml

from .pages import DOCS

FOLDER = DOCS / "howto" / "deploy"
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def text(name: str) -> str:
    """Return the text of a file."""
    return (FOLDER / name).read_text(encoding="utf-8")


def unit() -> configparser.SectionProxy:
    """Return the section [Service] of the unit file."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string(text("workers@.service"))
    return parser["Service"]


def instruction(name: str) -> str:
    """Return what follows an instruction of the Dockerfile, the last one of its kind."""
    lines = text("Dockerfile").replace("\\\n", " ").splitlines()
    return [line.removeprefix(name).strip() for line in lines if line.startswith(f"{name} ")][-1]


def compose() -> dict[str, Any]:
    """Return the services of the Compose file."""
    return yaml.safe_load(text("compose.yaml"))["services"]


def manifest(kind: str) -> dict[str, Any]:
    """Return the one object of a kind in the Kubernetes manifest."""
    [found] = [each for each in yaml.safe_load_all(text("kubernetes.yaml")) if each["kind"] == kind]
    return found


def pod() -> dict[str, Any]:
    """Return the spec of the Deployment's pods."""
    return manifest("Deployment")["spec"]["template"]["spec"]


def container() -> dict[str, Any]:
    """Return the one container of the Deployment's pods."""
    [found] = pod()["containers"]
    return found


def procfile() -> dict[str, str]:
    """Return the commands of the Procfile by name."""
    return dict(line.split(": ", 1) for line in text("Procfile").splitlines())


def options(words: list[str]) -> list[str]:
    """Return what a command line gives to runworkers."""
    return words[words.index("runworkers") + 1 :]


def workers() -> dict[str, list[str]]:
    """Return the options of the workers that each file starts."""
    return {
        "workers@.service": options(shlex.split(unit()["ExecStart"])),
        "Dockerfile": options(json.loads(instruction("CMD"))),
        "compose.yaml": options(compose()["workers"]["command"]),
        "kubernetes.yaml": options(container()["command"]),
        "Procfile": options(shlex.split(procfile()["worker"])),
    }


def patience() -> dict[str, int]:
    """Return the seconds that each file leaves between SIGTERM and SIGKILL."""
    return {
        "workers@.service": int(unit()["TimeoutStopSec"]),
        "compose.yaml": int(re.fullmatch(r"(\d+)s", compose()["workers"]["stop_grace_period"])[1]),
        "kubernetes.yaml": int(pod()["terminationGracePeriodSeconds"]),
    }
