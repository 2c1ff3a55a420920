"""Hosts of our own on this machine: network namespaces, each with a link to the machine's own that can be cut."""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Self

#: Set aside for tests of networks (RFC 2544): no host that anybody needs has an address in it.
NETWORK = ipaddress.ip_network("198.18.0.0/15")


def why_not() -> str:
    """Return why no hosts can be made here, "" if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the program ip, of iproute2"
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    return f"no network namespaces here: {done.stderr.strip()}" if done.returncode else ""


def ip(*words: str) -> None:
    """Run ``ip``; its own message is in the error."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Host:
    """The ``number``-th host of this test process, from 0. A context: the namespace lives as long as it."""

    number: int

    @property
    def name(self) -> str:
        """The name of the namespace, and of this machine's end of the link; names of links are short."""
        return f"dwq{os.getpid()}n{self.number}"

    def address(self, end: int) -> str:
        """Return the address of this machine's end of the link (1), or of the host's (2)."""
        links = NETWORK.num_addresses // 4
        return str(NETWORK[4 * ((2 * os.getpid() + self.number) % links) + end])

    @property
    def inside(self) -> list[str]:
        """The beginning of a command line that runs the rest of it on this host."""
        return ["ip", "netns", "exec", self.name]

    def cut(self) -> None:
        """Let the link swallow whatever is sent, in both directions."""
        ip("link", "set", self.name, "down")

    def mend(self) -> None:
        """Let the link carry again."""
        ip("link", "set", self.name, "up")

    def __enter__(self) -> Self:
        ip("netns", "add", self.name)
        try:
            ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            ip("address", "add", f"{self.address(1)}/30", "dev", self.name)
            ip("-n", self.name, "address", "add", f"{self.address(2)}/30", "dev", "eth0")
            ip("-n", self.name, "link", "set", "eth0", "up")
            self.mend()
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        # The link goes with the namespace that has its other end.
        ip("netns", "delete", self.name)
