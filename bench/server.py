"""Compares the fake server with aimock: requests per second, slowest percent, CPU per request, memory growth.

One load generator (`wrk -t1 -c8`) sends the same requests to both sides alternately. CPU time is for the whole server
process; on a busy machine, it is more stable than wall time.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.entry import Entry, rate_entry, time_entry
from bench.server_load import FIRST, LOADS, write_load
from bench.server_setup import AIMOCK_VERSION, Wrk, ensure_aimock, ensure_wrk
from bench.sides import ROOT, BenchError, Side

PEER: Final = f"aimock {AIMOCK_VERSION}"
SECONDS: Final = 4
MILLION: Final = 1_000_000
_TITLES: Final = {
    "one": "the same request",
    "thousand": "1,000 script entries, each asked for in turn",
    "different": "every request different",
}
_TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Load:
    """A wrk run's measurements: seconds for `p99` and `cpu`, the latter per request."""

    requests: int
    rate: float
    p99: float
    cpu: float


def server_entries(_ours: Side, runs: int) -> Iterator[Entry]:
    """Yield the server entries for `make bench`."""
    wrk, aimock = ensure_wrk(), ensure_aimock()
    for load in LOADS:
        pairs = [_pair(wrk, aimock, load, swap=bool(number % 2)) for number in range(runs)]
        title = _TITLES[load]
        yield rate_entry(
            name=f"fake server, {title}",
            peer=PEER,
            unit="requests/s",
            ours=median(our.rate for our, _ in pairs),
            theirs=median(their.rate for _, their in pairs),
            goal=2,
        )
        yield time_entry(
            name=f"  slowest percent, {title}",
            peer=PEER,
            unit="ms",
            ours=1e3 * median(our.p99 for our, _ in pairs),
            theirs=1e3 * median(their.p99 for _, their in pairs),
            goal=1,
        )
        yield time_entry(
            name=f"  CPU per request, {title}",
            peer=PEER,
            unit="µs",
            ours=1e6 * median(our.cpu for our, _ in pairs),
            theirs=1e6 * median(their.cpu for _, their in pairs),
            goal=None,
        )
    yield _memory(wrk)


def _pair(wrk: Wrk, aimock: Sequence[str], load: str, *, swap: bool) -> tuple[Load, Load]:
    sides = (False, True) if swap else (True, False)
    measured = {ours: _measure(wrk, aimock, load, ours=ours) for ours in sides}
    return measured[True], measured[False]


def _measure(wrk: Wrk, aimock: Sequence[str], load: str, *, ours: bool) -> Load:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        script, fixtures = write_load(folder, load)
        port = _free_port()
        command = (
            [sys.executable, "-m", "bench.server_ours", str(port), load]
            if ours
            else [*aimock, "--port", str(port), "--fixtures", str(fixtures), "--log-level", "silent"]
        )
        with _served(command, port) as process:
            _run(wrk, process.pid, port, script, seconds=2)
            return _run(wrk, process.pid, port, script, seconds=SECONDS)


def _memory(wrk: Wrk) -> Entry:
    """Return how much the server's memory grows between 100,000 and a million requests, all different."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        script, _ = write_load(Path(name), "different")
        port = _free_port()
        with _served([sys.executable, "-m", "bench.server_ours", str(port), "different"], port) as process:
            answered, early = 0, None
            while answered < MILLION:
                answered += _run(wrk, process.pid, port, script, seconds=SECONDS).requests
                if early is None and answered >= MILLION // 10:
                    early = _memory_of(process.pid)
            late = _memory_of(process.pid)
    return Entry(
        name=f"fake server's memory, {MILLION:,} different requests against the first tenth of them",
        unit="MiB more",
        ours=(late - (early or 0)) / 2**20,
        goal=8,
    )


@contextmanager
def _served(command: Sequence[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        try:
            _wait(port, process)
            yield process
        finally:
            process.kill()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(400):
        if process.poll() is not None:
            raise BenchError(f"the server did not start: exit code {process.returncode}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("POST", "/v1/chat/completions", FIRST)
            connection.getresponse().read()
        except ConnectionError:
            time.sleep(0.05)
        else:
            return
        finally:
            connection.close()
    raise BenchError("the server did not start within 20 seconds")


def _run(wrk: Wrk, pid: int, port: int, script: Path, *, seconds: int) -> Load:
    """Load the server for some seconds; raises `BenchError` unless every answer was correct."""
    before = _cpu(pid)
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    command = [wrk.command, "-t1", "-c8", f"-d{seconds}s", "--latency", "-s", str(script), url]
    done = subprocess.run(command, env=wrk.environment, capture_output=True, text=True, check=False)
    output = done.stdout
    requests, rate, p99 = (
        re.search(pattern, output)
        for pattern in (r"(\d+) requests in", r"Requests/sec:\s+([\d.]+)", r"99%\s+([\d.]+)(us|ms|s)")
    )
    if done.returncode or not (requests and rate and p99) or "Non-2xx" in output or "Socket errors" in output:
        raise BenchError(f"{' '.join(command)} failed:\n{output}{done.stderr}")
    answered = int(requests[1])
    if not answered:
        raise BenchError(
            f"no request was answered in {seconds} s: the machine is too busy to measure anything"
        )
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1.0}[p99[2]]
    return Load(answered, float(rate[1]), float(p99[1]) * unit, (_cpu(pid) - before) / answered)


def _cpu(pid: int) -> float:
    """Return the CPU seconds used by all of a process's threads."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _memory_of(pid: int) -> int:
    """Return a process's resident memory in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("utf-8"))
    assert found, "Linux says it for every process"
    return int(found[1]) * 1024


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
