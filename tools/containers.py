"""Sets up container tests: bubblewrap, and Docker with an image of this machine's Python.

`python -m tools.containers` installs missing Debian packages, which requires root. The tests that need the daemon start
it with its own folder and stop it; `python -m tools.containers COMMAND...` runs a command with a daemon.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from tools.npm import NotHere

REQUIRED: Final = "STATEK_CONTAINERS_REQUIRED"
"""If set, as in CI, the tests fail if neither is available."""
PACKAGES: Final = {"bwrap": "bubblewrap", "dockerd": "docker.io"}
IMAGE: Final = "statek-python"
_PATIENCE: Final = 20.0
"""Seconds that a daemon may take to start."""
_ASK: Final = (
    "import json, os, sys, sysconfig; "
    "print(json.dumps([os.path.realpath(sys.executable), sysconfig.get_path('stdlib')]))"
)
_LEFT_OUT: Final = frozenset(
    [
        "__pycache__",
        "test",
        "tests",
        "idlelib",
        "lib2to3",
        "ensurepip",
        "pydoc_data",
        "turtledemo",
        "tkinter",
        "distutils",
        "unittest",
        "site-packages",
        "dist-packages",
    ]
)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon: its address and its image."""

    address: str
    image: str


def ensure(program: str) -> str:
    """Return a program's path, installing it if missing; raises NotHere."""
    found = shutil.which(program)
    if found is not None:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NotHere(f"{program} is not installed, and only root on Debian can: {PACKAGES[program]}")
    print(f"installing {PACKAGES[program]}", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "--yes", "--no-install-recommends", PACKAGES[program])
    for command in (("apt-get", "update"), install):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotHere(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1:]}")
    found = shutil.which(program)
    if found is None:
        raise NotHere(f"{PACKAGES[program]} is installed and has no {program}")
    return found


def interpreter() -> str:
    """Return the Python for programs in containers: the system's, if there is one."""
    return shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin") or os.path.realpath(sys.executable)


@contextmanager
def daemon() -> Iterator[Daemon]:
    """Run a daemon with the image inside the block. Raises NotHere if that is not possible."""
    if os.geteuid() != 0:
        raise NotHere("a Docker daemon of our own needs root")
    program = ensure("dockerd")
    with tempfile.TemporaryDirectory(prefix="statek-docker-") as name:
        folder = Path(name)
        address = f"unix://{folder}/docker.sock"
        started, log = _started(program, folder, address)
        try:
            _wait(started, folder / "docker.sock", log)
            _load(address)
            yield Daemon(address, IMAGE)
        finally:
            started.terminate()
            try:
                started.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
            _unmount(folder)


def _started(program: str, folder: Path, address: str) -> tuple[subprocess.Popen[bytes], Path]:
    log = folder / "log"
    command = (
        *(program, "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("--pidfile", str(folder / "pid"), "-H", address),
        *("--iptables=false", "--ip6tables=false", "--bridge=none"),
    )
    with log.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL), log


def _wait(started: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while not socket.exists():
        if started.poll() is not None or time.monotonic() > until:
            lines = log.read_text(errors="replace").splitlines()
            raise NotHere(f"dockerd does not start here: {lines[-1] if lines else 'no output'}")
        time.sleep(0.05)


def _load(address: str) -> None:
    """Import the image from a tar of this machine's Python, /bin/sh and the libraries they need."""
    docker = shutil.which("docker") or "docker"
    done = subprocess.run(
        (docker, "-H", address, "import", "-", IMAGE), input=image(), capture_output=True, check=False
    )
    if done.returncode:
        raise NotHere(f"no image can be imported: {done.stderr.decode(errors='replace').strip()}")


def image() -> bytes:
    """Return a tar with a minimal root: Python at /usr/bin/python3, /bin/sh, and empty folders."""
    answer = subprocess.run((interpreter(), "-I", "-c", _ASK), capture_output=True, check=True).stdout
    python, library = (Path(path) for path in json.loads(answer))
    modules = sorted((library / "lib-dynload").glob("*.so"))
    shell = Path(os.path.realpath("/bin/sh"))
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for folder in ("tmp", "proc", "dev", "sys", "etc"):
            made = tarfile.TarInfo(folder)
            made.type, made.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.add("/", folder, recursive=False, filter=lambda _, made=made: made)  # type: ignore[misc]
        names: set[str] = set()
        for file in (python, shell, *_libraries((python, shell, *modules))):
            if str(file) not in names:
                names.add(str(file))
                tar.add(os.path.realpath(file), str(file).lstrip("/"))
        tar.add(library, str(library).lstrip("/"), filter=_wanted)
        for link, target in (("usr/bin/python3", python), ("bin/sh", shell)):
            if f"/{link}" not in names:
                pointing = tarfile.TarInfo(link)
                pointing.type, pointing.linkname = tarfile.SYMTYPE, str(target)
                tar.addfile(pointing)
    return packed.getvalue()


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if _LEFT_OUT & set(Path(entry.name).parts) else entry


def _libraries(files: tuple[Path, ...]) -> list[Path]:
    """Return the libraries that programs need, by the paths where they look for them."""
    done = subprocess.run(("ldd", *map(str, files)), capture_output=True, text=True, check=False)
    found = {word for line in done.stdout.splitlines() for word in line.split()[:3] if word.startswith("/")}
    return sorted(Path(word) for word in found if not word.endswith(":"))


def _unmount(folder: Path) -> None:
    """Unmount what a daemon left mounted, so that its folder can be deleted."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((mount for mount in mounts if mount.startswith(f"{folder}/")), reverse=True):
        subprocess.run(("umount", "--lazy", place), capture_output=True, check=False)


def with_daemon(command: list[str]) -> int:
    """Run a command with a daemon, with its address in DOCKER_HOST and its image in IMAGE."""
    with daemon() as started:
        environment = {**os.environ, "DOCKER_HOST": started.address, "IMAGE": started.image}
        return subprocess.run(command, env=environment, check=False).returncode


def main(arguments: list[str]) -> int:
    """Install what is missing and print the versions; return 0 even if something is unavailable, after printing so.

    With `COMMAND...`, run that command with a daemon instead.
    """
    if arguments:
        return with_daemon(arguments)
    for program in PACKAGES:
        try:
            done = subprocess.run((ensure(program), "--version"), capture_output=True, text=True, check=False)
            print(done.stdout.strip())
        except (NotHere, OSError) as why:
            print(
                f"NOT TESTED IN {PACKAGES[program].upper()}: {why}. Its tests will be skipped.",
                file=sys.stderr,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
