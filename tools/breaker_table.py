"""What the breaker checker finds in ours and in four libraries, as docs/protection.md shows it.

    python -m tools.breaker_table

The libraries' clocks are replaced while they are explored.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Coroutine, Generator, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from types import SimpleNamespace
from typing import Any, Final

import aiobreaker
import aiobreaker.circuitbreaker
import aiobreaker.state
import circuitbreaker
import purgatory
import pybreaker

from statek_sim.agent.protection.breaker import Breakers, BreakerSettings, Permit
from statek_sim.agent.protection.contract import BreakerAdapter, Finding, MakeBreaker, breaker_findings

_PURGATORY: Final[Any] = importlib.import_module("purgatory.domain.model")
COOLDOWN: Final = 10.0
LEASE: Final = 15.0
Clock = Callable[[], float]


class Failed(Exception):
    """What a call in the exploration fails with."""


class Ours:
    """Our breakers, one key."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._breakers = Breakers(BreakerSettings(failures=1, cooldown=COOLDOWN, lease=LEASE))

    def start(self) -> object | None:
        """Ask for a permit."""
        return self._breakers.ask("tool", at=self._now())

    def finish(self, call: object, *, failed: bool) -> None:
        """Hand the permit back."""
        assert isinstance(call, Permit)
        self._breakers.tell("tool", call, at=self._now(), failed=failed)


class Managed:
    """A library whose calls are context managers."""

    def __init__(
        self, call: Callable[[], contextlib.AbstractContextManager[object]], refusal: type[Exception]
    ) -> None:
        self._call = call
        self._refusal = refusal

    def start(self) -> object | None:
        """Enter the call."""
        call = self._call()
        try:
            call.__enter__()
        except self._refusal:
            return None
        return call

    def finish(self, call: Any, *, failed: bool) -> None:
        """Leave the call."""
        error = Failed() if failed else None
        with contextlib.suppress(Failed, self._refusal):
            call.__exit__(type(error) if error else None, error, None)


class Driven:
    """A library whose calls are generators or coroutines that stop in the middle, driven by hand."""

    def __init__(
        self,
        call: Callable[[], Generator[Any, Any, Any] | Coroutine[Any, Any, Any]],
        refusal: type[Exception],
    ) -> None:
        self._call = call
        self._refusal = refusal

    def start(self) -> object | None:
        """Run the call up to its middle."""
        call = self._call()
        try:
            call.send(None)
        except self._refusal:
            return None
        return call

    def finish(self, call: Any, *, failed: bool) -> None:
        """Run the rest, or fail in the middle."""
        with contextlib.suppress(StopIteration, Failed, self._refusal):
            if failed:
                call.throw(Failed())
            else:
                call.send(None)


def _fake_datetime(now: Clock) -> type[datetime]:
    class Fake(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime(2026, 1, 1, tzinfo=tz) + timedelta(seconds=now())

        @classmethod
        def utcnow(cls) -> Any:
            return datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None) + timedelta(seconds=now())

    return Fake


def _pybreaker(now: Clock) -> BreakerAdapter:
    pybreaker.datetime = _fake_datetime(now)  # type: ignore[attr-defined]
    breaker = pybreaker.CircuitBreaker(fail_max=1, reset_timeout=COOLDOWN)
    return Managed(breaker.calling, pybreaker.CircuitBreakerError)


def _circuitbreaker(now: Clock) -> BreakerAdapter:
    circuitbreaker.monotonic = now

    @circuitbreaker.CircuitBreaker(failure_threshold=1, recovery_timeout=COOLDOWN, name="explored")  # type: ignore[untyped-decorator]
    def call() -> Iterator[None]:
        yield

    return Driven(call, circuitbreaker.CircuitBreakerError)


def _purgatory(now: Clock) -> BreakerAdapter:
    _PURGATORY.time = SimpleNamespace(time=now)
    factory = purgatory.SyncCircuitBreakerFactory(default_threshold=1, default_ttl=COOLDOWN)
    return Managed(lambda: factory.get_breaker("explored"), _PURGATORY.OpenedState)


class _Middle:
    def __await__(self) -> Generator[None, None, None]:
        yield


def _aiobreaker(now: Clock) -> BreakerAdapter:
    aiobreaker.state.datetime = aiobreaker.circuitbreaker.datetime = _fake_datetime(now)
    breaker = aiobreaker.CircuitBreaker(fail_max=1, timeout_duration=timedelta(seconds=COOLDOWN))

    async def work() -> None:
        await _Middle()

    return Driven(lambda: breaker.call_async(work), aiobreaker.CircuitBreakerError)


BREAKERS: Final[dict[str, tuple[MakeBreaker, float | None]]] = {
    "ours": (Ours, LEASE),
    "pybreaker 1.4.1": (_pybreaker, None),
    "circuitbreaker 2.1.3": (_circuitbreaker, None),
    "purgatory 3.0.1": (_purgatory, None),
    "aiobreaker 1.2.0": (_aiobreaker, None),
}
"""How each is made, and the lease of its probes: without one, a probe may be waited for without end."""


@contextlib.contextmanager
def own_clocks() -> Iterator[None]:
    """Give the libraries their own clocks back at the end."""
    homes: list[tuple[Any, str]] = [
        (pybreaker, "datetime"),
        (circuitbreaker, "monotonic"),
        (_PURGATORY, "time"),
        (aiobreaker.state, "datetime"),
        (aiobreaker.circuitbreaker, "datetime"),
    ]
    before = [(home, name, getattr(home, name)) for home, name in homes]
    try:
        yield
    finally:
        for home, name, clock in before:
            setattr(home, name, clock)


def breaker_table(acts: int = 7) -> str:
    """Return the table in Markdown, of interleavings of up to `acts` acts."""
    lines = ["| breaker | " + " | ".join(Finding) + " |", "|---" * (len(Finding) + 1) + "|"]
    with own_clocks():
        for name, (make, lease) in BREAKERS.items():
            found = breaker_findings(make, cooldown=COOLDOWN, lease=lease, acts=acts)
            lines.append(
                f"| {name} | " + " | ".join("yes" if kind in found else "-" for kind in Finding) + " |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(breaker_table())
