"""What attacks are run under: nothing (the control), Landlock, and containers; each returns what it saw."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.agent.containers.program import MIB, NOBODY, Container, Ended, Limits, Mount, Program
from statek_sim.agent.permissions.workspace import Workspace
from statek_sim.errors import ContainerRefused

LIMITS: Final = Limits(
    seconds=1.5,
    memory=64 * MIB,
    processes=24,
    cpu=1.0,
    tmp=8 * MIB,
    output=64 * 1024,
    file=16 * MIB,
    folder=16 * MIB,
    open_files=128,
)
"""What programs of the corpus may use; those that take more take a few times that."""
_MERCY: Final = 0.3
"""Seconds that a program has to end when it is asked to."""
_NAMESPACES: Final = (
    *("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--ipc", "--uts", "--net"),
    *("--mount-proc", "--kill-child"),
)
_BOUNDS: Final = (
    "prlimit",
    *(
        f"--as={1024 * MIB}",
        "--nproc=400",
        f"--fsize={8 << 30}",
        "--cpu=10",
        "--core=0",
        "--nofile=2048",
        "--",
    ),
)
"""What nothing else bounds: an attack may work, and must not harm this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of a program: what it wrote, how it ended, whether it went over a limit that it was given.

    `refused`: it was not run, because the enforcer does not take its folder. `report` is what its caller reads of a
    file that it left.
    """

    output: str
    how: str
    over: tuple[str, ...] = ()
    report: str = ""
    refused: bool = False


class Enforcer(Protocol):
    """Runs programs of the corpus."""

    @property
    def name(self) -> str:
        """What it is called in the matrix."""

    def run(self, source: str, workspace: Path, secret: int, mode: str) -> Seen:
        """Run a program in its workspace; `secret` is an open file of ours, `mode` how the control is run."""


def python() -> str:
    """Return the Python that programs run on: the system's, which is in every sandbox, or this one."""
    found = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")
    return found or os.path.realpath(sys.executable)


class InContainer:
    """A container as an enforcer."""

    def __init__(self, container: Container, interpreter: str | None = None) -> None:
        self._container = container
        self._python = interpreter or python()

    @property
    def name(self) -> str:
        """The container's name."""
        return self._container.name

    def run(self, source: str, workspace: Path, secret: int, mode: str) -> Seen:
        """Run a program in a container."""
        mount = Mount(path=workspace, writable=True)
        program = Program(argv=(self._python, "-I", "-S", "-c", source), mounts=[mount])
        started = time.monotonic()
        try:
            ended = self._container.run(program, LIMITS)
        except ContainerRefused as error:
            return Seen(output="", how=f"refused: {error}", refused=True)
        took = time.monotonic() - started
        over = _over(ended, took, workspace)
        return Seen(
            output=ended.stdout + ended.stderr, how=_how(ended), over=over, report=_read_safely(workspace)
        )


def _over(ended: Ended, took: float, workspace: Path) -> tuple[str, ...]:
    """Return which limits did not hold, with room for how long it takes to notice."""
    found = []
    if took > LIMITS.seconds + 10:
        found.append("it outlives its time")
    if max(len(ended.stdout), len(ended.stderr)) > LIMITS.output:
        found.append("its output has no end")
    return (*found, *_large(workspace, 2 * LIMITS.folder))


def _large(workspace: Path, room: int) -> tuple[str, ...]:
    files = [path for path in workspace.rglob("*") if path.is_file() and not path.is_symlink()]
    if any(path.stat().st_size > LIMITS.file for path in files):
        return ("a file is too large",)
    return ("the workspace is too large",) if sum(path.stat().st_size for path in files) > room else ()


def _how(ended: Ended) -> str:
    last = ended.stderr.strip().splitlines()[-1:] if ended.exit else []
    return f"{ended.why}: {last[0]}" if last else ended.why


def _read_safely(workspace: Path) -> str:
    """Return what a careful caller reads of the program's report."""
    with Workspace(workspace) as opened:
        try:
            return opened.read("report.txt")
        except OSError:
            return ""


class Control:
    """No enforcer: the attack has to work here, or its row says nothing. As nobody, where we are root."""

    name = "none"

    def run(self, source: str, workspace: Path, secret: int, mode: str) -> Seen:
        """Run a program with nothing around it but bounds that keep this machine from harm."""
        return _ran((*_wrapped(mode), python(), "-I", "-S", "-c", source), workspace, files=[secret])


def _wrapped(mode: str) -> Sequence[str]:
    return (*_NAMESPACES, *_BOUNDS) if mode == "namespace" else _BOUNDS


def _ran(
    argv: Sequence[str],
    workspace: Path,
    *,
    files: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> Seen:
    """Run a program as most people do: all output is kept, and at the end of its time it is asked to end."""
    user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with subprocess.Popen(
        argv,
        cwd=workspace,
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=files,
        start_new_session=True,
        **user,
    ) as child:
        over, how = [], ""
        try:
            output, _ = child.communicate(timeout=LIMITS.seconds)
        except subprocess.TimeoutExpired:
            how = "it was asked to end"
            child.terminate()
            try:
                output, _ = child.communicate(timeout=_MERCY)
            except subprocess.TimeoutExpired:
                over.append("it outlives its time")
                output = b""
        return _told(child, output, how, over, workspace)


def _told(child: subprocess.Popen[bytes], output: bytes, how: str, over: list[str], workspace: Path) -> Seen:
    if child.poll() is None:
        child.kill()
    if over and child.stdout is not None:
        os.set_blocking(child.stdout.fileno(), False)
        output = child.stdout.read() or b""
    if len(output) > LIMITS.output:
        over.append("its output has no end")
    text = output.decode(errors="replace")
    last = text.strip().splitlines()[-1:] if child.wait() else []
    how = how or f"exit code {child.returncode}" + (f": {last[0][:200]}" if last else "")
    report = workspace / "report.txt"
    try:
        read = report.read_text() if report.is_file() else ""
    except OSError:
        read = ""
    return Seen(output=text, how=how, over=(*over, *_large(workspace, 2 * LIMITS.folder)), report=read)
