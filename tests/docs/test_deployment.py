"""The files for deployment fit the worker: its options, its patience, its exit codes, its probes."""

from __future__ import annotations

import re
import shlex

import pytest
from django.core.management import CommandParser

from django_workqueue.management.commands.runworkers import Command

from . import deployed
from .pages import DOCS, read, rows, section

END_SECONDS = 10


def parsed(words: list[str]):
    """Return the options as the command reads them."""
    parser = CommandParser(called_from_command_line=False)
    Command().add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(("name", "words"), deployed.workers().items())
def test_every_file_starts_a_worker(name, words):
    """No file gives an option that the command does not have."""
    assert parsed(words)


@pytest.mark.parametrize(("name", "seconds"), deployed.patience().items())
def test_whoever_kills_waits_longer_than_the_worker(name, seconds):
    """A worker that is killed before it has given back what runs leaves its jobs to their leases."""
    assert seconds >= parsed(deployed.workers()[name]).shutdown_timeout.total_seconds() + END_SECONDS


def test_each_file_is_shown_and_can_be_fetched():
    """A page shows the file itself, so that both are one, and links to it."""
    pages = {page.name: page.read_text() for page in (DOCS / "howto").glob("*.md")}

    for file in deployed.FOLDER.iterdir():
        shown = [text for text in pages.values() if f"```{{literalinclude}} deploy/{file.name}\n" in text]
        assert len(shown) == 1, file.name
        assert file.suffix == ".env" or f"](deploy/{file.name})" in shown[0], file.name


def test_unit_gives_up_where_starting_again_does_not_help():
    """Its exit codes are those of which the reference says so."""
    codes = dict(rows(section("docs/reference/runworkers.md", "Exit codes")))
    hopeless = {code for code, meaning in codes.items() if "will not help" in meaning or "Migrations" in meaning}

    assert set(deployed.unit()["RestartPreventExitStatus"].split()) == hopeless == {"2", "3"}


def test_unit_is_killed_by_its_watchdog_only_when_it_is_stuck():
    """A statement of the dispatcher may take 30 seconds, and it beats twice in the watchdog's time."""
    assert deployed.unit()["Type"] == "notify"
    assert int(deployed.unit()["WatchdogSec"]) > 2 * 30


def test_image_runs_the_worker_itself_as_somebody_else():
    """In brackets there is no shell that keeps the signals; a number tells Kubernetes that it is not root."""
    assert deployed.instruction("CMD").startswith("[")
    assert int(deployed.instruction("USER")) > 0
    assert "ENTRYPOINT" not in deployed.text("Dockerfile")


def test_health_check_looks_at_the_file_that_the_worker_touches():
    """And starts no Python for it."""
    [file] = re.findall(r"WORKQUEUE_HEARTBEAT_FILE=(\S+)", deployed.text("Dockerfile"))

    check = deployed.instruction("HEALTHCHECK").partition("CMD ")[2]
    assert shlex.split(check.replace('"$(', "").replace(')"', ""))[:4] == ["test", "-n", "find", file]


def test_pods_fit_their_worker():
    """One process that is not root, probes at its own port, and room between its own bound of memory and the pod's."""
    container, options = deployed.container(), parsed(deployed.workers()["kubernetes.yaml"])
    [port] = container["ports"]

    assert options.processes is None
    assert (port["containerPort"], options.health_host) == (options.health_port, "0.0.0.0")
    for probe in deployed.PROBES:
        assert container[probe]["httpGet"]["port"] == port["name"]
    assert container["resources"]["limits"]["memory"] == "512Mi"
    assert options.max_memory < 512 * 2**20
    assert deployed.pod()["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_manifest_migrates_with_the_code_that_it_rolls_out():
    """The Job and the Deployment name the same image, and the Job's steps are those of the guide on rollouts."""
    job = deployed.manifest("Job")["spec"]["template"]["spec"]
    steps = [*job["initContainers"], *job["containers"]]

    assert {step["image"] for step in steps} == {deployed.container()["image"]}
    assert [step["command"][2:] for step in steps] == [["migrate"], ["workqueue", "schedules", "sync"]]
    assert "workqueue schedules sync" in read("docs/howto/rollout.md")
