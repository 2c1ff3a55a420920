"""A proxy between workers and PostgreSQL that loses what a network may lose, at the moment that a test chooses."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Self

PROTOCOL_3 = b"\x00\x03"
#: The message by which the server says that it has done all that it was asked; its last byte is a state.
READY_FOR_QUERY = b"Z\x00\x00\x00\x05"
CHUNK = 65536


class Proxy:
    """Listens on ``port`` of the loopback interface and passes everything on to the server, unless told otherwise."""

    def __init__(self, server: Mapping[str, Any]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._links: list[_Link] = []
        self._trap: tuple[bytes, ...] = ()
        self._lock = threading.Lock()
        self.lost = threading.Event()

    @property
    def port(self) -> int:
        """Where the proxy listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def lose_reply(self, *texts: bytes) -> None:
        """
        Cut the first connection that runs statements with these texts, once the server has done the last.

        The client never hears of it. ``lost`` is set then.
        """
        self.lost.clear()
        self._trap = texts

    def silence(self, text: bytes) -> int:
        """Keep the connections that have run ``text`` open and pass nothing on to their clients. Answer how many."""
        chosen = [link for link in self._links if link.is_open and any(text in ran for ran in link.ran)]
        for link in chosen:
            link.silent = True
        return len(chosen)

    def next_text(self, caught: int) -> bytes | None:
        """Return what a connection that has run ``caught`` of the trap's texts must run next to be cut."""
        return self._trap[caught] if caught < len(self._trap) else None

    def spring(self, caught: int) -> bool:
        """Whether the connection that has run so many of the trap's texts is the one to be cut; only one is."""
        with self._lock:
            if not self._trap or caught < len(self._trap):
                return False
            self._trap = ()
            return True

    def connect(self) -> socket.socket:
        """Return a new connection to the server."""
        host, port = self._server["HOST"] or "localhost", self._server["PORT"] or 5432
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        to_server = socket.socket(socket.AF_UNIX)
        to_server.connect(f"{host}/.s.PGSQL.{port}")
        return to_server

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        # Closing alone would leave the thread in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._links:
            link.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._links.append(_Link(self, client))


class _Reader:
    """Reads what a client sends, and tells which statements are to be run: plain ones, and those prepared before."""

    def __init__(self) -> None:
        self._rest = b""
        self._started = False
        self._prepared: dict[bytes, bytes] = {}

    def statements(self, data: bytes) -> Iterator[bytes]:
        """Yield the texts of the statements that ``data``, after all that came before it, asks for."""
        self._rest += data
        while message := self._take():
            kind, body = message
            if kind == b"Q":
                yield body
            elif kind == b"P":
                name, text, _ = body.split(b"\0", 2)
                self._prepared[name] = text
            elif kind == b"B":
                _, name, _ = body.split(b"\0", 2)
                yield self._prepared.get(name, b"")

    def _take(self) -> tuple[bytes, bytes] | None:
        """Take one whole message, if there is one. Those before the session begins have no kind."""
        head = 1 if self._started else 0
        end = head + int.from_bytes(self._rest[head : head + 4])
        if not head + 4 <= end <= len(self._rest):
            return None
        kind, body = self._rest[:head], self._rest[head + 4 : end]
        self._rest = self._rest[end:]
        self._started = self._started or body.startswith(PROTOCOL_3)
        return kind, body


class _Link:
    """One connection of a client, with a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = proxy.connect()
        self._reader = _Reader()
        self._caught = 0
        self._swallowing = False
        self.silent = False
        self.is_open = True
        self.ran: set[bytes] = set()
        self._pumps = [
            threading.Thread(target=self._run, args=(pump,), daemon=True) for pump in (self._upstream, self._downstream)
        ]
        for pump in self._pumps:
            pump.start()

    def cut(self) -> None:
        """End the connection on both sides."""
        self.is_open = False
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection, and wait for its threads."""
        self.cut()
        for pump in self._pumps:
            pump.join()
        self._client.close()
        self._server.close()

    def _run(self, pump) -> None:
        with contextlib.suppress(OSError):
            pump()
        self.cut()

    def _upstream(self) -> None:
        while data := self._client.recv(CHUNK):
            for text in self._reader.statements(data):
                self.ran.add(text)
                self._look_at(text)
            self._server.sendall(data)

    def _look_at(self, text: bytes) -> None:
        wanted = self._proxy.next_text(self._caught)
        if wanted is not None and wanted in text:
            self._caught += 1
            # Before the server can answer.
            self._swallowing = self._proxy.spring(self._caught)

    def _downstream(self) -> None:
        swallowed = b""
        while data := self._server.recv(CHUNK):
            if self._swallowing:
                swallowed += data
                if swallowed[-6:-1] == READY_FOR_QUERY:
                    self._proxy.lost.set()
                    return
            elif not self.silent:
                self._client.sendall(data)
