"""A PostgreSQL server of our own in a temporary folder, which may be killed.

with Cluster() as cluster:                 # expects postgres and initdb of the system's packages
    Server(cluster.url)
    cluster.kill(); cluster.start()        # SIGKILL of every process; recovery
"""

from __future__ import annotations

import contextlib
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence


def programs() -> pathlib.Path | None:
    """Return the folder of the newest server's programs; None without one."""
    path = shutil.which("postgres")
    folders = (
        [pathlib.Path(path).resolve().parent] if path else map(pathlib.Path, glob.glob("/usr/lib/postgresql/*/bin"))
    )
    whole = [folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()]
    return max(whole, key=lambda folder: float(folder.parent.name) if folder.parent.name.isdigit() else 0, default=None)


def version() -> str:
    """Return the server's name and version."""
    return subprocess.check_output([str(programs() / "postgres"), "--version"], text=True).strip()


class Cluster:
    """A server that listens on a Unix socket only, with `settings` as `name=value`.

    Attributes:
        url: of its database, as its superuser.
    """

    def __init__(self, disk: str | None = None, settings: Sequence[str] = ()):
        folder = programs()
        assert folder is not None, "no PostgreSQL server: apt-get install postgresql"
        self._programs, self._settings = folder, settings
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="cluster-", dir=disk))
        self._user = pwd.getpwnam("postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name)
        if os.geteuid() == 0:  # the server refuses to run as root
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        self._folder.chmod(0o755)
        self._process: subprocess.Popen | None = None
        self.url = f"postgresql://{self._user.pw_name}@/postgres?host={self._folder}"
        self._run("initdb", "--no-sync", "--auth=trust", "--locale=C", "--encoding=UTF8", self._data).check_returncode()
        self.start()

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _options(self) -> dict:
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def _run(self, name: str, *arguments: str) -> subprocess.CompletedProcess:
        command = [str(self._programs / name), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd="/", **self._options())

    def start(self) -> None:
        """Start the server and wait until it has recovered."""
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self._programs / "postgres"), "-D", self._data, "-c", "listen_addresses=", "-k",
                    str(self._folder), *(word for setting in self._settings for word in ("-c", setting)),
                ],
                stdout=log, stderr=log, cwd="/", start_new_session=True, **self._options(),
            )  # fmt: skip
        deadline = time.monotonic() + 600
        while self._run("pg_isready", "-h", str(self._folder), "-d", "postgres").returncode:
            assert self._process.poll() is None, (self._folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill every process of the server and wait for their end."""
        assert self._process is not None
        pids = [self._process.pid]
        for path in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError):
                name, _, rest = pathlib.Path(path).read_text().rpartition(")")
                if int(rest.split()[1]) == self._process.pid:
                    pids.append(int(name.split()[0]))
        for pid in pids:  # the first one first, or it starts the others again
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        while any(os.path.exists(f"/proc/{pid}") for pid in pids[1:]):
            time.sleep(0.01)

    def log(self) -> str:
        """Return what the server wrote."""
        return (self._folder / "log").read_text(errors="replace")

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        shutil.rmtree(self._folder)
