"""Programs that stay within their limits, and some that do not, and what every container has to tell of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Timer
from typing import Final

from statek_sim.agent.containers.program import MIB, Container, Ended, Limits, Mount, Program

LIMITS: Final = Limits(
    seconds=20.0,
    memory=64 * MIB,
    processes=24,
    cpu=1.0,
    tmp=8 * MIB,
    output=1000,
    file=8 * MIB,
    folder=16 * MIB,
)
_SHORT: Final = replace(LIMITS, seconds=1.0)
_SLEEPS: Final = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(100)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One program, and what has to be true of its end."""

    about: str
    source: str
    fits: Callable[[Ended], bool]
    limits: Limits = LIMITS
    stdin: bytes = b""
    stops: bool = False


_CASES: Final = (
    _Case(
        about="its output and exit code are told",
        source="import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)",
        fits=lambda end: (end.exit, end.stdout, end.stderr, end.killed) == (7, "out\n", "err\n", False),
    ),
    _Case(
        about="it reads its input to the end",
        source="import sys; print(len(sys.stdin.read()))",
        stdin=b"x" * 200_000,
        fits=lambda end: end.stdout == "200000\n",
    ),
    _Case(
        about="what is too much of its output is dropped, and that is told",
        source="print('x' * 100_000)",
        fits=lambda end: (len(end.stdout), end.truncated, end.exit) == (1000, True, 0),
    ),
    _Case(
        about="it is killed at the end of its time, whatever signals it ignores",
        source=_SLEEPS,
        limits=_SHORT,
        fits=lambda end: end.killed and end.timed_out and not end.oom,
    ),
    _Case(
        about="what it wrote before it was killed is told",
        source=f"print('first', flush=True); {_SLEEPS}",
        limits=_SHORT,
        fits=lambda end: end.timed_out and end.stdout == "first\n",
    ),
    _Case(
        about="it is killed when the caller stopped waiting",
        source=_SLEEPS,
        stops=True,
        fits=lambda end: end.killed and end.stopped and not end.timed_out,
    ),
    _Case(
        about="a signal that it dies of is told",
        source="import os; os.kill(os.getpid(), 9)",
        fits=lambda end: (end.exit, end.signal, end.timed_out) == (None, 9, False),
    ),
    _Case(
        about="it gets no more memory than it may have",
        source="room = bytearray(200 * 1024 * 1024); print('got it')",
        fits=lambda end: end.exit != 0 and "got it" not in end.stdout,
    ),
    _Case(
        about="it starts no more processes than it may",
        source="import os, time\nfor _ in range(40):\n  if not os.fork(): time.sleep(2); os._exit(0)\nprint('got it')",
        fits=lambda end: end.exit != 0 and "got it" not in end.stdout,
    ),
    _Case(
        about="what it starts ends with it",
        source="import os, time\nif not os.fork():\n  os.setsid(); time.sleep(100)",
        fits=lambda end: end.exit == 0 and not end.timed_out,
    ),
    _Case(
        about="/tmp takes what it may take, and no more",
        source="open('/tmp/a', 'wb').write(b'x' * 2**20); print('one', flush=True)\n"
        "for n in range(4): open(f'/tmp/{n}', 'wb').write(b'x' * 4 * 2**20)",
        fits=lambda end: end.exit == 1 and end.stdout == "one\n",
    ),
    _Case(
        about="the root cannot be written",
        source="open('/planted', 'w')",
        fits=lambda end: end.exit == 1,
    ),
    _Case(
        about="it has no network",
        source="import socket; socket.create_connection(('192.0.2.1', 80), 1)",
        fits=lambda end: end.exit == 1 and "timed out" not in end.stderr,
    ),
    _Case(
        about="its folder can be written, and what is protected in it cannot",
        source="open('new', 'w').write('x'); print('one', flush=True); open('.git/config', 'w')",
        fits=lambda end: end.exit == 1 and end.stdout == "one\n",
    ),
    _Case(
        about="its folder does not grow for ever",
        source="import time\nfor n in range(200): open(f'f{n}', 'wb').write(b'x' * 2**20); time.sleep(0.02)",
        fits=lambda end: end.overfull and end.killed,
    ),
)


def check_container(container: Container, folder: Path, *, python: str) -> int:
    """Run the programs; return how many there were, or fail with the first that goes wrong.

    `folder` is made writable for the programs; `python` is an interpreter that is in the container. It takes seconds.
    """
    for number, case in enumerate(_CASES):
        place = folder / f"case-{number}"
        (place / ".git").mkdir(parents=True)
        place.chmod(0o777)
        ended = _ran(container, case, place, python)
        assert case.fits(ended), f"{container.name}: {case.about}; got {ended}"
    return len(_CASES)


def _ran(container: Container, case: _Case, place: Path, python: str) -> Ended:
    program = Program(
        argv=(python, "-I", "-S", "-c", case.source),
        stdin=case.stdin,
        mounts=[Mount(path=place, writable=True)],
    )
    if not case.stops:
        return container.run(program, case.limits)
    stop = Event()
    timer = Timer(0.5, stop.set)
    timer.start()
    try:
        return container.run(program, case.limits, stop=stop)
    finally:
        timer.cancel()
