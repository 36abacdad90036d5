"""Runs programs in Docker through its SDK (extra `docker`): create, start, wait, kill, inspect, remove.

The agent document §8 makes a single call, `containers.run(..., timeout=)`, but that argument raises a TypeError, and
without it there is no time limit. This module enforces the time limit itself, and reports the complete outcome.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any, Final

from statek_sim.agent.containers.program import (
    NOBODY,
    Ended,
    Limits,
    Program,
    check_writable,
    kept_from_being_made,
    protected_places,
)
from statek_sim.agent.containers.supervision import Bounds, Output
from statek_sim.errors import ContainerFailed

_DEFAULTS: Final = Limits()
_TICK: Final = 0.05
"""The interval between checks of the time limit, in seconds."""
_PATIENCE: Final = 30.0
"""The time that the daemon has to end a container after the kill command, in seconds."""
_PERIOD: Final = 100_000
_OLDEST: Final = 25


class Docker:
    """Runs each program in a new container from `image`, which must exist locally, because images are never pulled.

    `address` is the daemon's address, such as `unix:///var/run/docker.sock`; if None, it is read from the environment.
    Raises `ContainerFailed` if the daemon is older than version `oldest`: before version 25, Docker's default seccomp
    profile allowed `io_uring`.
    """

    name = "docker"

    def __init__(
        self,
        image: str,
        *,
        address: str | None = None,
        runtime: str | None = None,
        oldest: int = _OLDEST,
    ) -> None:
        self._image = image
        self._runtime = runtime
        self._api, self._errors = _connected(address)
        with self._daemon_errors("its version"):
            version = str(self._api.version()["Version"])
        if int(version.split(".", maxsplit=1)[0]) < oldest:
            raise ContainerFailed(f"docker: the daemon is {version}; expected {oldest} or later")
        with self._daemon_errors(f"image {image!r}"):
            self._api.inspect_image(image)

    def run(self, program: Program, limits: Limits = _DEFAULTS, *, stop: Event | None = None) -> Ended:
        """Run a program; see `Container.run`."""
        writable = [mount for mount in program.mounts if mount.writable]
        for mount in writable:
            check_writable(mount)
        with ExitStack() as until_the_end:
            for mount in writable:
                until_the_end.enter_context(kept_from_being_made(mount))
            with self._daemon_errors("the container"):
                made = self._api.create_container(**self._settings(program, limits))["Id"]
                until_the_end.callback(self._remove, made)
                # The time limit starts with the program, as in bubblewrap.
                return self._watched(
                    made, program, Bounds(limits, stop, [mount.path for mount in writable]), limits
                )

    def close(self) -> None:
        """Close the connections to the daemon."""
        self._api.close()

    @contextmanager
    def _daemon_errors(self, what: str) -> Iterator[None]:
        """Convert daemon errors in a `with` block to `ContainerFailed`, mentioning `what`."""
        try:
            yield
        except (self._errors.DockerException, OSError) as error:
            raise ContainerFailed(f"docker: {what}: {error}") from error

    def _remove(self, made: str) -> None:
        with self._daemon_errors("the container's end"):
            self._api.remove_container(made, force=True, v=True)

    # -- one container -----------------------------------------------------------------------------------------

    def _watched(self, made: str, program: Program, bounds: Bounds, limits: Limits) -> Ended:
        out, errors = Output(limits.output), Output(limits.output)
        stream = self._api.attach(made, stdout=True, stderr=True, stream=True, demux=True)
        feeds = self._api.attach_socket(made, params={"stdin": 1, "stream": 1}) if program.stdin else None
        reader = threading.Thread(target=_kept, args=(stream, out, errors), daemon=True)
        reader.start()
        self._api.start(made)
        bounds.start()
        if feeds is not None:
            threading.Thread(target=_fed, args=(feeds, program.stdin), daemon=True).start()
        while reader.is_alive():
            reader.join(_TICK)
            if reader.is_alive() and bounds.give_up():
                self._kill(made)
                reader.join(_PATIENCE)
        self._api.wait(made)
        state = self._api.inspect_container(made)["State"]
        code = int(state["ExitCode"])
        return bounds.ended(code, out, errors, oom=bool(state["OOMKilled"]))

    def _kill(self, made: str) -> None:
        try:
            self._api.kill(made)
        except self._errors.APIError as error:
            if error.status_code != 409:  # The container has already ended.
                raise

    def _settings(self, program: Program, limits: Limits) -> dict[str, Any]:
        return {
            "image": self._image,
            "command": list(program.argv),
            "entrypoint": [],
            # Nobody if we are root, otherwise our own user, who owns the folders.
            "user": f"{os.geteuid()}:{os.getegid()}" if os.geteuid() else f"{NOBODY}:{NOBODY}",
            "working_dir": program.starts_in,
            "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", **program.environment},
            "network_disabled": True,
            "stdin_open": bool(program.stdin),
            "hostname": "sandbox",
            "host_config": self._api.create_host_config(**self._held(program, limits)),
        }

    def _held(self, program: Program, limits: Limits) -> dict[str, Any]:
        held = {
            "network_mode": "none",
            "read_only": True,
            "tmpfs": {"/tmp": f"size={limits.tmp},mode=1777,nosuid,nodev"},
            "shm_size": limits.tmp,
            "mem_limit": limits.memory,
            "memswap_limit": limits.memory,
            "pids_limit": limits.processes,
            "cpu_period": _PERIOD,
            "cpu_quota": max(1000, int(limits.cpu * _PERIOD)),
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "ulimits": [
                {"Name": name, "Soft": most, "Hard": most}
                for name, most in (
                    ("core", 0),
                    ("fsize", limits.file),
                    ("nofile", limits.open_files),
                    ("cpu", int(limits.seconds) + 1),
                )
            ],
            "binds": list(_binds(program)),
            "log_config": {"Type": "none", "Config": {}},
            "init": True,
            "ipc_mode": "private",
        }
        return held if self._runtime is None else {**held, "runtime": self._runtime}


def _binds(program: Program) -> Iterator[str]:
    for mount in program.mounts:
        yield f"{mount.path}:{mount.path}:{'rw' if mount.writable else 'ro'}"
        if mount.writable:
            for place in protected_places(mount):
                yield f"{place}:{place}:ro"


# -- the SDK ----------------------------------------------------------------------------------------------------


def _connected(address: str | None) -> tuple[Any, Any]:
    try:
        import docker  # noqa: PLC0415  # takes 0.3 s, and is an extra
        import docker.errors  # noqa: PLC0415
    except ImportError:
        raise ContainerFailed(
            "the docker SDK is not installed: pip install 'pytest-statek[docker]'"
        ) from None
    try:
        client = docker.DockerClient(base_url=address) if address else docker.from_env()
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        raise ContainerFailed(f"docker: no daemon at {address or 'the default address'}: {error}") from error
    return client.api, docker.errors


def _kept(stream: Iterator[tuple[bytes | None, bytes | None]], out: Output, errors: Output) -> None:
    """Add the chunks of both streams to their outputs until the streams end."""
    for first, second in stream:
        out.add(first or b"")
        errors.add(second or b"")


def _fed(attached: Any, stdin: bytes) -> None:
    """Write the program's input, then close the connection."""
    raw = getattr(attached, "_sock", attached)
    try:
        raw.sendall(stdin)
        raw.shutdown(socket.SHUT_WR)
    except OSError:  # The program did not read all of it.
        pass
    finally:
        attached.close()
