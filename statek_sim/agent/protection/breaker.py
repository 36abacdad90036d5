"""Circuit breakers (document 002, 6.3), one per key, in whatever time they are told.

Nothing here reads a clock: every question carries `at`, in seconds. A call that is let through gets a permit, which it
hands back with its result; a permit of an earlier generation changes nothing, so late results are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from statek_sim.errors import BadInput

DOCUMENT_FAILURES: Final = 5
DOCUMENT_COOLDOWN: Final = 60.0


class Circuit(StrEnum):
    """The state of a breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """`failures` in a row open a breaker for `cooldown` seconds; a probe may take `lease` seconds.

    A lease of None is as long as the cooldown.
    """

    failures: int = DOCUMENT_FAILURES
    cooldown: float = DOCUMENT_COOLDOWN
    lease: float | None = None

    def __post_init__(self) -> None:
        if self.failures < 1 or not self.cooldown > 0 or (self.lease is not None and not self.lease > 0):
            raise BadInput(f"a breaker needs failures of 1 or more and times above 0, not {self!r}")

    @property
    def probe_time(self) -> float:
        """How long a probe keeps others out."""
        return self.cooldown if self.lease is None else self.lease


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to make one call, of the breaker's generation that gave it; `probe`: the number of a probe, or 0."""

    generation: int
    probe: int = 0


@dataclass(frozen=True, slots=True)
class Breaker:
    """One breaker as a value: a checkpoint may hold it. Times are seconds."""

    circuit: Circuit = Circuit.CLOSED
    failures: int = 0
    generation: int = 0
    opened_at: float = 0.0
    probe: int = 0
    """The number of the probe that is out; numbers are not used again."""
    probe_until: float = 0.0


def breaker_saved(breaker: Breaker) -> dict[str, object]:
    """Return a breaker's fields as plain values."""
    return asdict(breaker) | {"circuit": breaker.circuit.value}


def breaker_from(saved: Mapping[str, Any]) -> Breaker:
    """Return the breaker whose fields these are."""
    return Breaker(**{**saved, "circuit": Circuit(saved["circuit"])})


def ask(breaker: Breaker, at: float, settings: BreakerSettings) -> tuple[Breaker, Permit | None]:
    """Return the breaker and a permit for one call, or None: the call must not be made now."""
    if breaker.circuit is Circuit.CLOSED:
        return breaker, Permit(breaker.generation)
    if breaker.circuit is Circuit.OPEN and at - breaker.opened_at < settings.cooldown:
        return breaker, None
    if breaker.circuit is Circuit.HALF_OPEN and at < breaker.probe_until:
        return breaker, None
    number = breaker.probe + 1
    until = at + settings.probe_time
    half = replace(breaker, circuit=Circuit.HALF_OPEN, probe=number, probe_until=until)
    return half, Permit(breaker.generation, number)


def tell(
    breaker: Breaker,
    permit: Permit,
    at: float,
    settings: BreakerSettings,
    *,
    failed: bool,
) -> Breaker:
    """Return the breaker after the call of `permit` ended."""
    if _late(breaker, permit):
        return breaker
    if not failed:
        if breaker.circuit is Circuit.CLOSED:
            return replace(breaker, failures=0)
        return Breaker(generation=breaker.generation + 1, probe=breaker.probe)
    failures = breaker.failures + 1
    if breaker.circuit is Circuit.CLOSED and failures < settings.failures:
        return replace(breaker, failures=failures)
    return replace(
        breaker, circuit=Circuit.OPEN, failures=failures, generation=breaker.generation + 1, opened_at=at
    )


def withdraw(breaker: Breaker, permit: Permit, at: float) -> Breaker:
    """Return the breaker when the call of `permit` is not made: a probe's lease ends, nothing else changes."""
    if breaker.circuit is not Circuit.HALF_OPEN or _late(breaker, permit):
        return breaker
    return replace(breaker, probe_until=min(breaker.probe_until, at))


def _late(breaker: Breaker, permit: Permit) -> bool:
    if permit.generation != breaker.generation:
        return True
    # A probe whose lease ended was replaced: only the newest probe speaks for the callee.
    return breaker.circuit is Circuit.HALF_OPEN and permit.probe != breaker.probe


class Breakers:
    """Breakers by key, for example one per tool or host: a failure of one key never keeps another from being called.

    `state` is a value that a checkpoint may hold and `restore` takes back.
    """

    def __init__(self, settings: BreakerSettings | None = None) -> None:
        self._settings = settings or BreakerSettings()
        self._state: dict[str, Breaker] = {}

    @property
    def state(self) -> Mapping[str, Breaker]:
        """Every breaker that is not as new, by key."""
        return {key: breaker for key, breaker in sorted(self._state.items()) if breaker != Breaker()}

    def restore(self, state: Mapping[str, Breaker]) -> None:
        """Go on from `state`. Permits from before still count, by their generation."""
        self._state = dict(state)

    def ask(self, key: str, *, at: float) -> Permit | None:
        """Return a permit for one call of `key`, or None when it must not be made now."""
        self._state[key], permit = ask(self._state.get(key, Breaker()), at, self._settings)
        return permit

    def tell(self, key: str, permit: Permit, *, at: float, failed: bool) -> None:
        """Take note of how the call of `permit` ended."""
        breaker = self._state.get(key, Breaker())
        self._state[key] = tell(breaker, permit, at, self._settings, failed=failed)

    def withdraw(self, key: str, permit: Permit, *, at: float) -> None:
        """Take note that the call of `permit` is not made; nothing is learnt of the callee."""
        self._state[key] = withdraw(self._state.get(key, Breaker()), permit, at)

    def why_not(self, key: str, *, at: float) -> str:
        """Return why `key` is not called at `at`, for the model."""
        breaker = self._state.get(key, Breaker())
        until = breaker.opened_at + self._settings.cooldown
        if breaker.circuit is Circuit.HALF_OPEN:
            return f"{key!r} failed before and is being tried by one call; wait for it"
        return f"{key!r} failed {breaker.failures} times in a row and is left alone for {max(0.0, until - at):g} s more"
