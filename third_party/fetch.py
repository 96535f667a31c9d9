"""Gets the pinned source of a dependency from the Python package index, for the native build:

    python third_party/fetch.py hnswlib build/third_party      ->  build/third_party/hnswlib-0.8.0/hnswlib/*.h

`third_party/<name>.json` names version, archive, sha256 and the folders that are kept. pip does the download, so its
settings (index, proxy, certificates, offline folder) hold here too. Nothing of the archive is executed by us; pip asks
it for its metadata. Run by third_party/hnswlib.cmake where no system copy is found. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


class FetchError(Exception):
    """The source could not be had; the message says why."""


def pip_download(pin: dict, into: Path) -> Path:
    """Returns the archive that pip has put under `into`."""
    # A build under pip's isolation hides pip itself behind PYTHONPATH; its own environment is tried second.
    without_path = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    reasons = []
    for environment in (dict(os.environ), without_path):
        pip = [sys.executable, "-m", "pip"]
        found = subprocess.run([*pip, "--version"], capture_output=True, text=True, env=environment, check=False)
        if found.returncode != 0:
            reasons.append(f"{sys.executable} has no pip")
            continue
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", pin["name"]]
        command = [*pip, "download", *options, "--dest", str(into), f"{pin['name']}=={pin['version']}"]
        run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        archive = into / pin["archive"]
        if run.returncode == 0 and archive.exists():
            return archive
        reasons.append(f"`{' '.join(command[1:])}` says:\n{(run.stderr or run.stdout).strip()[-2000:]}")
    raise FetchError("\n".join(dict.fromkeys(reasons)))


def unpack(pin: dict, archive: Path, into: Path) -> None:
    """Checks the archive's hash and unpacks what is kept to `into`, whole or not at all."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != pin["sha256"]:
        raise FetchError(
            f"{archive.name}: expected sha256 {pin['sha256']}, got {digest}; the index serves another file than the "
            "one pinned: do not build with it"
        )
    top = f"{pin['name']}-{pin['version']}/"
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=into.parent))
    try:
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                name = member.name.removeprefix(top)
                if member.isfile() and ".." not in name and any(name.startswith(keep) for keep in pin["keep"]):
                    target = partial / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(tar.extractfile(member).read())
        partial.chmod(0o755)
        try:
            partial.rename(into)
        except OSError:  # another build was faster
            if not into.exists():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def fetch(name: str, folder: Path) -> Path:
    """Returns `folder`/<name>-<version>, made if it is not there."""
    pin = json.loads((HERE / f"{name}.json").read_text())
    into = folder.resolve() / f"{pin['name']}-{pin['version']}"
    if not into.exists():
        into.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as temporary:
            unpack(pin, pip_download(pin, Path(temporary)), into)
    return into


if __name__ == "__main__":
    try:
        print(fetch(sys.argv[1], Path(sys.argv[2])))
    except FetchError as error:
        sys.exit(str(error))
