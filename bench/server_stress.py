"""Stress-tests the fake server with many clients: slow ones, ones hit by faults, ones that send while it stops.

`python -m bench.server_stress` runs the heavy variant and prints the results; the tests run the same with fewer
clients. Every part reports how many answers were correct, out of how many.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import resource
import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.entry import Entry
from bench.sides import Side
from statek_sim.providers.script import text
from statek_sim.server.fault import (
    Fault,
    FaultRule,
    HttpError,
    Malformed,
    NoUsage,
    Reset,
    SlowFirstByte,
    SlowTokens,
    Truncated,
)
from statek_sim.server.llm_server import LLMServer

_PATH: Final = "/v1/chat/completions"
_PATIENCE: Final = 5.0
_SECONDS: Final = 120.0
"""Seconds before a part's clients give up."""

FAULTS: Final[Sequence[Fault]] = (
    HttpError(429, retry_after=1),
    HttpError(503),
    SlowFirstByte(0.2),
    SlowTokens(0.02),
    Reset(after=2),
    Truncated(),
    Malformed(),
    NoUsage(),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A part's result: how many of `total` were correct, and the seconds taken."""

    name: str
    good: int
    total: int
    seconds: float

    @property
    def held(self) -> bool:
        """Whether everything was correct."""
        return self.good == self.total

    def __str__(self) -> str:
        return f"{self.name}: {self.good} of {self.total} correct, {self.seconds:.1f} s"


def request(message: str = "hi", *, stream: bool = False, close: bool = False) -> bytes:
    """Return a request's bytes."""
    content = {"model": "gpt-4o", "messages": [{"role": "user", "content": message}], "stream": stream}
    body = json.dumps(content, ensure_ascii=False).encode()
    head = f"POST {_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    return (head + ("Connection: close\r\n" if close else "") + "\r\n").encode() + body


def address(server: LLMServer) -> tuple[str, int]:
    """Return a server's address."""
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    return host, int(port)


def pipelined(count: int) -> Outcome:
    """Send all requests before reading: all are answered in order."""
    began = time.monotonic()
    with LLMServer() as server:
        server.llm.play([text("Hello.").forever()])
        with socket.create_connection(address(server), timeout=_SECONDS) as connection:
            connection.sendall(request() * (count - 1) + request(close=True))
            received = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    numbers = [int(number) for number in re.findall(rb'"chatcmpl-(\d+)"', received)]
    good = sum(number == at for at, number in enumerate(numbers, 1))
    return Outcome("pipelined requests", good, count, time.monotonic() - began)


def slow_clients(count: int) -> Outcome:
    """Let all clients concurrently write a request in pieces and read a stream in pieces."""

    async def client(host: str, port: int, number: int) -> bool:
        reader, writer = await asyncio.open_connection(host, port)
        sent = request(f"client {number}", stream=True, close=True)
        for at in range(0, len(sent), 40):
            writer.write(sent[at : at + 40])
            await asyncio.sleep(0.02)
        received = b""
        while piece := await reader.read(64):
            received += piece
            await asyncio.sleep(0.002)
        writer.close()
        return received.startswith(b"HTTP/1.1 200") and received.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")

    return _crowd("slow clients", count, client, ())


def struck_clients(count: int) -> Outcome:
    """Inject faults into a third of the requests; all others must get complete answers."""

    async def client(host: str, port: int, number: int) -> bool:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(request(f"client {number}", stream=number % 2 == 0, close=True))
        try:
            received = await reader.read(-1)
        except ConnectionResetError:
            return True
        finally:
            writer.close()
        return received.startswith((b"HTTP/1.1 200", b"HTTP/1.1 429", b"HTTP/1.1 503"))

    rules = [FaultRule(fault=fault, rate=0.05, seed=number) for number, fault in enumerate(FAULTS)]
    return _crowd("clients with faults", count, client, rules)


def _crowd(name: str, count: int, client: object, rules: Sequence[FaultRule]) -> Outcome:
    began = time.monotonic()
    with LLMServer() as server:
        server.llm.play([text("Hello there, whoever you are.").forever()], faults=rules)
        server.llm.warm_up()
        host, port = address(server)

        async def everybody() -> list[object]:
            assert callable(client)
            clients = [client(host, port, number) for number in range(count)]
            return await asyncio.wait_for(asyncio.gather(*clients, return_exceptions=True), _SECONDS)

        answers = asyncio.run(everybody())
        # Nobody is lost: each request is in the journal, under one number.
        good = sum(answer is True for answer in answers) if server.journal.total == count else 0
    return Outcome(name, good, count, time.monotonic() - began)


def stops(count: int, clients: int = 8) -> Outcome:
    """Repeatedly stop a server under load: it stops in time and leaves no thread or port behind."""
    began, good = time.monotonic(), 0
    for _ in range(count):
        server = LLMServer()
        server.llm.play([text("Hello there.").forever()])
        server.start()
        where, over = address(server), threading.Event()

        def ask(where: tuple[str, int] = where, over: threading.Event = over) -> None:
            while not over.is_set():
                try:
                    with socket.create_connection(where, timeout=_SECONDS) as connection:
                        connection.sendall(request(stream=True) * 3)
                        connection.recv(4096)
                except OSError:
                    time.sleep(0.001)

        asking = [threading.Thread(target=ask, daemon=True) for _ in range(clients)]
        for thread in asking:
            thread.start()
        while not server.journal.total:
            time.sleep(0.001)
        server.stop()
        over.set()
        for thread in asking:
            thread.join(_SECONDS)
        left = any(thread.is_alive() for thread in asking) or not server.join(0)
        try:
            socket.create_connection(where, timeout=1).close()
        except OSError:
            good += not left
    return Outcome("stops under load", good, count, time.monotonic() - began)


def large_message(size: int, peers: int = 4) -> Outcome:
    """Send one large message while other clients send requests; a request that waits less than 5 s is good.

    This is a wall-clock limit, so only for the benchmark; counting all tokens in 20 MB took 16 s.
    """
    worst: list[float] = []
    began = time.monotonic()
    with LLMServer() as server:
        server.llm.play([text("Hello.").forever()])
        server.llm.warm_up()
        over = threading.Event()

        def ask() -> None:
            longest = 0.0
            while not over.is_set():
                sent_at = time.monotonic()
                with socket.create_connection(address(server), timeout=_SECONDS) as connection:
                    connection.sendall(request(close=True))
                    while connection.recv(4096):
                        pass
                longest = max(longest, time.monotonic() - sent_at)
            worst.append(longest)

        asking = [threading.Thread(target=ask, daemon=True) for _ in range(peers)]
        for thread in asking:
            thread.start()
        with socket.create_connection(address(server), timeout=_SECONDS) as connection:
            connection.sendall(request("many words " * (size // 11), close=True))
            received = b"".join(iter(lambda: connection.recv(1 << 20), b""))
        over.set()
        for thread in asking:
            thread.join(_SECONDS)
    good = sum(seconds < _PATIENCE for seconds in worst) + received.startswith(b"HTTP/1.1 200")
    return Outcome(f"clients beside a message of {size:,} bytes", good, peers + 1, time.monotonic() - began)


def given_back(count: int, size: int) -> Outcome:
    """Send half a body and disconnect; the server must release it immediately, without garbage collection.

    Whether and when the C library returns the memory to the system is not measured.
    """
    began = time.monotonic()
    gc.disable()
    tracemalloc.start()
    try:
        with LLMServer() as server:
            server.llm.play([])
            head = f"POST {_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {2 * size}\r\n\r\n".encode()
            clients = [socket.create_connection(address(server), timeout=_SECONDS) for _ in range(count)]
            piece = head + b"x" * size
            before = tracemalloc.get_traced_memory()[0]
            for connection in clients:
                connection.sendall(piece)
            for connection in clients:
                connection.close()
            deadline = time.monotonic() + _SECONDS
            while (
                kept := tracemalloc.get_traced_memory()[0] - before
            ) > size and time.monotonic() < deadline:
                time.sleep(0.05)
            most = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    return Outcome("bodies given back", int(kept <= size < most), 1, time.monotonic() - began)


def heavy() -> Iterator[Outcome]:
    """Yield the heavy variant's results, part by part."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most), most))
    yield pipelined(20_000)
    yield slow_clients(500)
    yield struck_clients(200)
    yield stops(30)
    yield large_message(20_000_000)
    yield given_back(20, 10_000_000)


def stress_entries(_ours: Side, _runs: int) -> Iterator[Entry]:
    """Yield the stress entries for `make bench`: the number of incorrect answers, which must be 0."""
    for outcome in heavy():
        yield Entry(
            name=f"fake server, {outcome.name}: {outcome.total:,}, incorrect",
            unit="",
            ours=outcome.total - outcome.good,
            goal=0,
        )


def main() -> None:
    """Run the heavy variant; exit 1 if anything was incorrect."""
    held = True
    for outcome in heavy():
        print(outcome, flush=True)
        held = held and outcome.held
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"most memory of the process, clients included: {peak} MiB")
    sys.exit(not held)


if __name__ == "__main__":
    main()
