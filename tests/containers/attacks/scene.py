"""What is around a program that attacks, and what it did to it: evidence that is taken outside of any enforcer.

Files that must not be read or changed, a process of the same user, listeners on loopback, shared memory, an open file,
a variable. Everything is made for one program and taken away after it.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from statek_sim.agent.containers.program import NOBODY

SECRET_NAME: Final = "STATEK_SECRET"
_IPC_PRIVATE, _IPC_RMID = 0, 0
_CANARY: Final = "as it was"
_TICK: Final = 0.02
_SETTLED: Final = 5.0
"""Seconds of the wall that a process is given to come to rest before it is looked at."""


class Scene:
    """One scene; use it as a context manager. `names` are what programs call its parts by."""

    def __init__(self) -> None:
        self._nonce = os.urandom(8).hex()
        self.secret = f"secret-{self._nonce}"
        self._open = ExitStack()
        self._reached: set[str] = set()
        self._over = threading.Event()
        self.names: dict[str, object] = {"NONCE": self._nonce, "SECRET_NAME": SECRET_NAME}

    def __enter__(self) -> Scene:
        try:
            self._files()
            self._processes()
            self._sockets()
            self._memory()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._open.close()

    # -- what there is -----------------------------------------------------------------------------------------

    def _files(self) -> None:
        base = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="statek-scene-"))).resolve()
        base.chmod(0o755)
        self.outside, self.workspace = base / "outside", base / "workspace"
        for folder in (self.outside, self.workspace, self.workspace / ".git" / "hooks"):
            folder.mkdir(parents=True)
        (self.outside / "secret.txt").write_text(self.secret)
        (self.outside / "canary.txt").write_text(_CANARY)
        (self.workspace / ".git" / "config").write_text("[core]\n")
        (self.workspace / "notes.txt").write_text("notes\n")
        for folder, mode in ((self.outside, 0o777), (self.workspace, 0o755)):
            folder.chmod(mode)
        (self.outside / "secret.txt").chmod(0o644)
        (self.outside / "canary.txt").chmod(0o666)
        if os.geteuid() == 0:
            # All of it is the program's own: a hard link to another's file is refused by the kernel anyway.
            for folder in (self.outside, self.workspace):
                for place in (folder, *folder.rglob("*")):
                    os.chown(place, NOBODY, NOBODY)
        self.names |= {
            "SECRET_FILE": self.outside / "secret.txt",
            "CANARY": self.outside / "canary.txt",
            "OUTSIDE": self.outside,
            "WORKSPACE": self.workspace,
        }

    def _processes(self) -> None:
        user: dict[str, object] = (
            {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        secret = (self.outside / "secret.txt").open("rb")
        self._open.callback(secret.close)
        mark = f"mark-{self._nonce}"
        self._victim = subprocess.Popen(  # type: ignore[call-overload]  # who it is run as
            # A copy's own name, so that it can be told from every other process.
            ("/bin/sh", "-c", "sleep 100 & wait", mark),
            env={"SECRET": self.secret, "PATH": "/usr/bin:/bin"},
            stdin=secret,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.outside,
            start_new_session=True,
            **user,
        )
        self._open.callback(self._end_victim)
        self.names |= {"VICTIM": self._victim.pid, "MARK": mark[::-1]}
        self.file = os.open(self.outside / "secret.txt", os.O_RDONLY)
        self._open.callback(os.close, self.file)
        os.set_inheritable(self.file, True)
        self.names["FD"] = self.file
        os.environ[SECRET_NAME] = self.secret
        self._open.callback(os.environ.pop, SECRET_NAME)

    def _end_victim(self) -> None:
        try:
            os.killpg(self._victim.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._victim.wait()

    def _sockets(self) -> None:
        loopback = ("127.0.0.1", 0)
        tcp = self._listening(socket.AF_INET, loopback)
        udp = self._open.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(loopback)
        unix, abstract = str(self.outside / "socket"), f"statek-{self._nonce}"
        listeners = {"TCP": tcp, "UNIX": self._listening(socket.AF_UNIX, unix)}
        listeners["ABSTRACT"] = self._listening(socket.AF_UNIX, f"\0{abstract}")
        os.chmod(unix, 0o777)
        self.names |= {"TCP": tcp.getsockname()[1], "UDP": udp.getsockname()[1], "UNIX": unix}
        self.names |= {"ABSTRACT": abstract, "TCP6": tcp.getsockname()[1]}
        try:
            listeners["TCP6"] = self._listening(socket.AF_INET6, ("::1", 0))
            self.names["TCP6"] = listeners["TCP6"].getsockname()[1]
        except OSError:  # A machine without it; the control says so.
            pass
        with socket.socket() as free:
            free.bind(loopback)
            self.names["FREE"] = free.getsockname()[1]
        self._listeners, self._datagrams = listeners, udp
        udp.setblocking(False)
        threading.Thread(target=self._visit, daemon=True).start()

    def _listening(self, family: int, at: object) -> socket.socket:
        there = self._open.enter_context(socket.socket(family))
        there.bind(at)  # type: ignore[arg-type]  # the family's own kind of address
        there.listen()
        there.setblocking(False)
        return there

    def _visit(self) -> None:
        """Try to reach what the program may serve, until the scene is over."""
        while not self._over.wait(_TICK):
            with socket.socket() as visitor:
                visitor.settimeout(_TICK)
                try:
                    visitor.connect(("127.0.0.1", int(str(self.names["FREE"]))))
                except OSError:
                    continue
                self._reached.add("it serves to the outside")

    def _memory(self) -> None:
        name = f"statek-{self._nonce}"
        there = Path("/dev/shm") / name
        there.write_text(self.secret)
        there.chmod(0o644)
        self._open.callback(there.unlink, missing_ok=True)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        segment = libc.shmget(_IPC_PRIVATE, 4096, 0o1666)
        self._open.callback(libc.shmctl, segment, _IPC_RMID, None)
        at = libc.shmat(segment, None, 0)
        ctypes.memmove(at, self.secret.encode(), len(self.secret))
        libc.shmdt(ctypes.c_void_p(at))
        self.names |= {"SHM": name, "SYSV": segment}

    # -- what was done -----------------------------------------------------------------------------------------

    def evidence(self, output: str, *, before: Mapping[str, str], report: str) -> list[str]:
        """Return what the program did that it must not; `before` is what `state` was, `report` what its caller read."""
        found = list(self._reached)
        if f"WON-{self._nonce}" in output:
            found.append("it says so")
        if self.secret in output:
            found.append("it has a secret")
        if self.secret in report:
            found.append("its caller reads a secret for it")
        found += [f"{name} changed" for name, was in sorted(before.items()) if self.state().get(name) != was]
        found += [f"{name} was reached" for name, there in self._listeners.items() if _visited(there)]
        try:
            self._datagrams.recv(100)
            found.append("a datagram came out")
        except BlockingIOError:
            pass
        if self._survivors():
            found.append("it lives on")
        return found

    def plain(self, text: str) -> str:
        """Return a text without what is another in each scene: folders, numbers of processes, names."""
        text = text.replace(str(self.workspace.parent), "").replace(self._nonce, "N")
        return re.sub(rf"\b{self._victim.pid}\b", "PID", text)

    def state(self) -> dict[str, str]:
        """Return how everything is that must stay as it is."""
        outside = {
            path.relative_to(self.outside).as_posix(): path.read_text() if path.is_file() else "there"
            for path in sorted(self.outside.rglob("*"))
            if not path.is_socket() and not path.is_fifo()
        }
        pipes = [path.name for path in self.outside.rglob("*") if path.is_fifo()]
        git = {
            f".git/{path.relative_to(self.workspace / '.git')}": path.read_text()
            for path in sorted((self.workspace / ".git").rglob("*"))
            if path.is_file()
        }
        return {
            "what is outside": repr((outside, pipes)),
            "what is protected": repr(git),
            "a victim": _state_of(self._victim.pid),
            "the machine's name": socket.gethostname(),
        }

    def _survivors(self) -> list[int]:
        """Return processes of the program that are there still, and end them."""
        found = [pid for pid, command in _commands() if f"WON-{self._nonce}" in command]
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return found


def _visited(there: socket.socket) -> bool:
    try:
        there.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _state_of(pid: int) -> str:
    """Return whether a process is there, sleeps and is not stopped or traced; it is awaited while it runs.

    Who is sent a signal is awake before the sender goes on, and dies (or stops) when it has a processor: on a busy
    machine that is later than the end of the program that sent it.
    """
    until = time.monotonic() + _SETTLED
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "gone"
        if state not in "RD" or time.monotonic() > until:
            return "well" if state in "RSD" else state
        time.sleep(_TICK)


def _commands() -> Iterator[tuple[int, str]]:
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                yield int(place.name), (place / "cmdline").read_text(errors="replace")
            except OSError:
                continue
