"""Runs programs in bubblewrap: in new namespaces, with a read-only root, a seccomp filter and limits.

The caller may be any user. If it is root, the program runs as nobody (uid 65534): bubblewrap creates the sandbox as
root, so that folders owned by root can be mounted, and `setpriv` drops root before the program starts.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from statek_sim.agent.containers import seccomp
from statek_sim.agent.containers.program import (
    NOBODY,
    Ended,
    Limits,
    Mount,
    Program,
    check_writable,
    kept_from_being_made,
    protected_places,
)
from statek_sim.agent.containers.supervision import Cgroup, cgroup_place, memory_of, watch
from statek_sim.errors import ContainerFailed

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""The host's system folders that are visible to a program: those with programs and libraries, but not /etc."""
CONFIGURATION: Final = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_DEFAULTS: Final = Limits()
_PATIENCE: Final = 10_000
"""The time that the kernel has to end a killed process, in milliseconds."""
_JOIN: Final = 'echo $$ > "$GROUP_" || exit 126; unset GROUP_; exec "$@"'


class Bubblewrap:
    """Runs programs in bubblewrap; `visible` lists folders that programs may read in addition to the system's.

    A control group (version 2) enforces limits on all processes together. If none can be created, the limits apply to
    each process, which is weaker. The property `limits` names the method in use.
    """

    name = "bubblewrap"

    def __init__(self, *, visible: Sequence[Path] = (), command: str = "bwrap", groups: bool = True) -> None:
        found = shutil.which(command)
        if found is None:
            raise ContainerFailed(f"{command!r} is not installed; on Debian: apt-get install bubblewrap")
        if not sys.platform.startswith("linux"):
            raise ContainerFailed("bubblewrap requires Linux")
        self._command = found
        self._visible = tuple(visible)
        self._place = cgroup_place() if groups else None

    @property
    def limits(self) -> str:
        """How memory, processes and CPU time are limited: `rlimits` or `cgroup v2`."""
        return "rlimits" if self._place is None else "cgroup v2"

    def run(self, program: Program, limits: Limits = _DEFAULTS, *, stop: Event | None = None) -> Ended:
        """Run a program; see `Container.run`."""
        writable = [mount for mount in program.mounts if mount.writable]
        for mount in writable:
            check_writable(mount)
        with ExitStack() as until_the_end:
            group = None if self._place is None else Cgroup(self._place, limits)
            if group is not None:
                until_the_end.callback(group.remove)
            for mount in writable:
                until_the_end.enter_context(kept_from_being_made(mount))
            ended = self._run(program, limits, stop, group, [mount.path for mount in writable])
            if group is not None and group.out_of_memory:
                return replace(ended, oom=True)
            return ended

    def _run(
        self,
        program: Program,
        limits: Limits,
        stop: Event | None,
        group: Cgroup | None,
        folders: Sequence[Path],
    ) -> Ended:
        status_pipe, tells = os.pipe()
        filtered = _filter()
        try:
            with subprocess.Popen(
                self._argv(program, limits, group, tells, filtered),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # The program can inspect bubblewrap's process, so that process gets no data of ours.
                env={} if group is None else {"GROUP_": group.file},
                pass_fds=[number for number in (tells, filtered) if number is not None],
                start_new_session=True,
            ) as child:
                os.close(tells)
                tells = -1
                try:
                    inner, status = _inner(status_pipe)
                except BaseException:
                    child.kill()
                    raise
                if inner is None:
                    raise ContainerFailed(_why_not(child))
                kill = _killer(child, inner, group)
                # Without a group, limits apply to each process; the supervisor therefore also checks the totals.
                memory = partial(memory_of, inner) if group is None else None
                ended = watch(
                    child,
                    limits,
                    stdin=program.stdin,
                    kill=kill,
                    stop=stop,
                    folders=folders,
                    memory=memory,
                )
                if ended.exit is not None and b"exit-code" not in status + _rest(status_pipe):
                    raise ContainerFailed(f"bubblewrap could not create a sandbox: {ended.stderr.strip()}")
                return ended
        finally:
            for number in (status_pipe, tells, filtered):
                if number is not None and number >= 0:
                    os.close(number)

    # -- the command -------------------------------------------------------------------------------------------

    def _argv(
        self, program: Program, limits: Limits, group: Cgroup | None, tells: int, filtered: int | None
    ) -> list[str]:
        joins = [] if group is None else ["/bin/sh", "-c", _JOIN, "sh"]
        return [
            *joins,
            self._command,
            *self._namespaces(),
            *_file_system(self._visible, program.mounts, limits),
            *_variables(program.environment),
            *("--json-status-fd", str(tells)),
            *(() if filtered is None else ("--seccomp", str(filtered))),
            *("--chdir", program.starts_in, "--"),
            *_gives_up_root(),
            *_rlimits(limits, alone=group is None),
            *program.argv,
        ]

    @staticmethod
    def _namespaces() -> Iterator[str]:
        yield from (
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-uts",
            "--unshare-cgroup-try",
        )
        yield from ("--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox")
        if os.geteuid() == 0:
            yield from ("--cap-drop", "ALL")
            for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
                yield from ("--cap-add", capability)
        else:
            yield from ("--unshare-user", "--disable-userns", "--uid", str(NOBODY), "--gid", str(NOBODY))
            yield from ("--cap-drop", "ALL")


def _file_system(visible: Sequence[Path], mounts: Sequence[Mount], limits: Limits) -> Iterator[str]:
    for place in SYSTEM:
        if os.path.islink(place):
            yield from ("--symlink", os.readlink(place), place)
        elif os.path.isdir(place):
            yield from ("--ro-bind", place, place)
    yield from ("--perms", "0755", "--dir", "/etc")
    for place in CONFIGURATION:
        yield from ("--ro-bind-try", place, place)
    yield from ("--proc", "/proc", "--dev", "/dev")
    for place in ("/dev/shm", "/tmp"):  # the container's own
        yield from ("--perms", "1777", "--size", str(limits.tmp), "--tmpfs", place)
    yield from ("--remount-ro", "/dev")
    for path in (*visible, *(mount.path for mount in mounts)):
        for parent in reversed(path.parents[:-1]):
            yield from ("--perms", "0755", "--dir", str(parent))
    for path in visible:
        yield from ("--ro-bind", str(path), str(path))
    for mount in mounts:
        yield from ("--bind" if mount.writable else "--ro-bind", str(mount.path), str(mount.path))
        if mount.writable:
            for protected in map(str, protected_places(mount)):
                yield from ("--ro-bind-try", protected, protected)
    yield from ("--remount-ro", "/")


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", **environment}.items():
        yield from ("--setenv", name, value)


def _gives_up_root() -> Sequence[str]:
    if os.geteuid() != 0:
        return ()
    own = ("--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--no-new-privs")
    return ("/usr/bin/setpriv", *own, "--inh-caps=-all", "--bounding-set=-all")


def _rlimits(limits: Limits, *, alone: bool) -> Sequence[str]:
    """Return the limits for each process; `alone` means that nothing else limits memory and processes."""
    found = ["/usr/bin/prlimit", "--core=0", f"--fsize={limits.file}", f"--nofile={limits.open_files}"]
    found.append(f"--cpu={int(limits.seconds) + 1}")
    if alone:
        found += [f"--as={limits.memory}", f"--nproc={limits.processes}"]
    return (*found, "--")


def _filter() -> int | None:
    """Return a descriptor for a file with the seccomp filter, or None if there is no filter for this processor."""
    code = seccomp.program()
    if code is None:
        return None
    number = os.memfd_create("seccomp")
    os.write(number, code)
    os.lseek(number, 0, os.SEEK_SET)
    return number


# -- before and after -------------------------------------------------------------------------------------------


def _inner(status_pipe: int) -> tuple[int | None, bytes]:
    """Return the pid of the sandbox's first process, or None if it has none, and the status output after the pid."""
    text = b""
    while b"}" not in text:
        piece = os.read(status_pipe, 4096)
        if not piece:
            return None, text
        text += piece
    first, _, rest = text.partition(b"}")
    return int(json.loads(first + b"}")["child-pid"]), rest


def _rest(status_pipe: int) -> bytes:
    """Return the rest of bubblewrap's status output: the program's exit code, if it was started."""
    text = b""
    while piece := os.read(status_pipe, 4096):
        text += piece
    return text


def _why_not(child: subprocess.Popen[bytes]) -> str:
    errors = child.communicate()[1].decode(errors="replace").strip()
    return f"bubblewrap could not create a sandbox: {errors or f'exit code {child.returncode}'}"


def _killer(child: subprocess.Popen[bytes], inner: int, group: Cgroup | None) -> Callable[[], None]:
    # A pid can be reused once the process is gone; a descriptor cannot.
    try:
        first: int | None = os.pidfd_open(inner)
    except ProcessLookupError:
        first = None

    def kill() -> None:
        nonlocal first
        if first is not None:
            try:
                signal.pidfd_send_signal(first, signal.SIGKILL)
            except ProcessLookupError:
                pass
            # The first process of a sandbox ends only after all others have ended.
            gone = select.poll()
            gone.register(first, select.POLLIN)
            gone.poll(_PATIENCE)
            os.close(first)
            first = None
        if child.poll() is None:
            child.kill()
        if group is not None:
            group.kill()

    return kill
