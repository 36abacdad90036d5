"""Loop protection: keyed circuit breakers, and detection of agents that repeat themselves.

Source: the harness document §6.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, Literal

from statek_sim.errors import BadInput
from statek_sim.values import JSON

DOCUMENT_FAILURES: Final = 5
DOCUMENT_COOLDOWN: Final = 60.0


class Circuit(StrEnum):
    """The state of a circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """Breaker settings: a breaker opens for `cooldown` seconds after `failures` in a row.

    Then one call is made as a probe, which may take `lease` seconds (None: as long as the cooldown).
    """

    failures: int = DOCUMENT_FAILURES
    cooldown: float = DOCUMENT_COOLDOWN
    lease: float | None = None

    def __post_init__(self) -> None:
        if self.failures < 1 or not self.cooldown > 0 or (self.lease is not None and not self.lease > 0):
            raise BadInput(f"a breaker needs at least 1 failure and times above 0, got {self!r}")

    @property
    def probe_time(self) -> float:
        """The time for which a probe blocks other calls, in seconds."""
        return self.cooldown if self.lease is None else self.lease


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission for one call, with its breaker's generation; `probe` is the number of a probe, or 0."""

    generation: int
    probe: int = 0


@dataclass(frozen=True, slots=True)
class Breaker:
    """The state of a circuit breaker, as a value that a checkpoint can store. Times are in seconds."""

    circuit: Circuit = Circuit.CLOSED
    failures: int = 0
    generation: int = 0
    opened_at: float = 0.0
    probe: int = 0
    """The number of the probe in flight. Numbers are not reused."""
    probe_until: float = 0.0


def breaker_from(saved: Mapping[str, Any]) -> Breaker:
    """Return a breaker whose fields are given as plain values."""
    return Breaker(**{**saved, "circuit": Circuit(saved["circuit"])})


def _late(breaker: Breaker, permit: Permit) -> bool:
    if permit.generation != breaker.generation:
        return True
    # A probe whose lease ended was replaced, so that only the newest probe's result counts.
    return breaker.circuit is Circuit.HALF_OPEN and permit.probe != breaker.probe


class Breakers:
    """Circuit breakers, keyed for example by tool or host. Failures under one key never block another.

    `state` is a value that a checkpoint can store, and `restore` loads it.
    """

    def __init__(self, settings: BreakerSettings | None = None) -> None:
        self._settings = settings or BreakerSettings()
        self._state: dict[str, Breaker] = {}

    @property
    def state(self) -> Mapping[str, Breaker]:
        """The breakers that are not in their initial state, keyed as in `ask`."""
        return {key: breaker for key, breaker in sorted(self._state.items()) if breaker != Breaker()}

    def restore(self, state: Mapping[str, Breaker]) -> None:
        """Replace the state of all breakers; earlier permits remain valid."""
        self._state = dict(state)

    def ask(self, key: str, *, at: float) -> Permit | None:
        """Return a permit for one call under `key`, or None if the call must not be made now."""
        breaker = self._state.get(key, Breaker())
        if breaker.circuit is Circuit.CLOSED:
            return Permit(breaker.generation)
        if breaker.circuit is Circuit.OPEN and at - breaker.opened_at < self._settings.cooldown:
            return None
        if breaker.circuit is Circuit.HALF_OPEN and at < breaker.probe_until:
            return None
        number, until = breaker.probe + 1, at + self._settings.probe_time
        self._state[key] = replace(breaker, circuit=Circuit.HALF_OPEN, probe=number, probe_until=until)
        return Permit(breaker.generation, number)

    def tell(self, key: str, permit: Permit, *, at: float, failed: bool) -> None:
        """Record whether the call with this permit failed."""
        breaker = self._state.get(key, Breaker())
        if _late(breaker, permit):
            return
        closed, generation = breaker.circuit is Circuit.CLOSED, breaker.generation + 1
        failures = breaker.failures + 1 if failed else 0
        if closed and failures < self._settings.failures:
            self._state[key] = replace(breaker, failures=failures)
        elif failed:
            self._state[key] = replace(
                breaker, circuit=Circuit.OPEN, failures=failures, generation=generation, opened_at=at
            )
        else:
            self._state[key] = Breaker(generation=generation, probe=breaker.probe)

    def withdraw(self, key: str, permit: Permit, *, at: float) -> None:
        """Record that the call with this permit was not made; it counts neither as a success nor as a failure.

        A probe's lease ends.
        """
        breaker = self._state.get(key, Breaker())
        if breaker.circuit is Circuit.HALF_OPEN and not _late(breaker, permit):
            self._state[key] = replace(breaker, probe_until=min(breaker.probe_until, at))

    def why_not(self, key: str, *, at: float) -> str:
        """Return a message for the model that explains why `key` is not called at second `at`."""
        breaker = self._state.get(key, Breaker())
        until = breaker.opened_at + self._settings.cooldown
        if breaker.circuit is Circuit.HALF_OPEN:
            return f"{key!r} failed before and is being tried by one call; wait for it"
        return (
            f"{key!r} failed {breaker.failures} times in a row and will not be called for "
            f"another {max(0.0, until - at):g} s"
        )


_WINDOW: Final = 5
"""The document's `windowSize`. Loops are detected from the third output on."""
_THRESHOLD: Final = 0.9
"""The document's `threshold`: strings that are more similar than this count as equal."""

_NEAR: Final = 25
"""Long enough for most progress reports and most lists of pages."""

Response = Literal["nudge", "fewer_tools", "escalate", "stop"]
STRATEGY: Final[tuple[Response, ...]] = ("nudge", "fewer_tools", "escalate", "stop")
"""The responses to loops, in order.

Source: the harness document, where detection "triggers strategy change", then the hard stop.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSeen:
    """An executed call and its result, as the model sees it."""

    tool: str
    arguments: Mapping[str, JSON]
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSeen:
    """A turn. `progress`: it achieved something, such as a required step."""

    text: str = ""
    calls: Sequence[CallSeen] = ()
    progress: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """Defines what counts as a loop. `periods`: the longest period, in turns; `repeats`: how often it must occur.

    `near`: the first response is given after this many consecutive turns that each resemble the previous one, or the
    one a longer period before; 0 disables it. `polling` maps the names of tools that poll legitimately to how often the
    same answer is allowed, in a row or alternating with other polls.
    """

    periods: int = 4
    repeats: int = 3
    alike: float = _THRESHOLD
    near: int = _NEAR
    polling: Mapping[str, int] = field(default_factory=dict)
    strategy: Sequence[Response] = STRATEGY

    def __post_init__(self) -> None:
        if self.periods < 1 or self.repeats < 2:
            raise BadInput(
                f"a loop needs periods of at least 1 turn and at least 2 repeats, got {self.periods} and {self.repeats}"
            )
        if not self.strategy:
            raise BadInput("a strategy needs at least one response; the last one is repeated")
        for response in self.strategy:
            if response not in STRATEGY:
                raise BadInput(f"unknown response {response!r}; expected one of {', '.join(STRATEGY)}")
        if self.near < 0 or self.near == 1:
            raise BadInput(
                f"expected `near` to be at least 2 turns, or 0 to disable the check, got {self.near!r}"
            )
        if not 0 <= self.alike <= 1:
            raise BadInput(f"expected `alike` from 0 to 1, got {self.alike!r}")
        for tool, times in self.polling.items():
            if times < 0:
                raise BadInput(f"polling limit for {tool!r}: {times!r} times, expected 0 or more")

    @property
    def kept(self) -> int:
        """The number of turns to remember."""
        patience = max(self.polling.values(), default=0) + 1
        return max(self.periods * max(self.repeats, patience), _WINDOW)


@dataclass(frozen=True, slots=True)
class _Turn:
    signature: str
    """Identical for equal calls with equal results; empty for a turn without calls."""
    text: str
    """The text of a turn without calls, or else the start and end of its calls and results."""
    polls: int
    """How often the same answer is allowed if all of the turn's calls poll, else 0."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The turns so far, as a value that a checkpoint can store. `found` counts loops since the last progress."""

    turns: tuple[_Turn, ...] = ()
    found: int = 0
    calm: int = 0


def watch_from(saved: Mapping[str, Any]) -> Watch:
    """Return a watch whose fields are given as plain values."""
    return Watch(tuple(_Turn(**turn) for turn in saved["turns"]), saved["found"], saved["calm"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A detected loop: the same `period` turns occurred `repeats` times in a row.

    `response` is what to do about it, and `reason` is a sentence for the model.
    """

    period: int
    repeats: int
    response: Response
    reason: str


def observe(watch: Watch, turn: TurnSeen, settings: LoopSettings | None = None) -> tuple[Watch, Loop | None]:
    """Return the watch after `turn`, and the loop that the turn completes, if any.

    A loop's turns are counted once, so that the model has as many turns to change its behaviour as detection needed.
    The next loop gets the strategy's next response; the strategy restarts after progress, or after as many turns
    without a loop as are remembered.
    """
    settings = settings or LoopSettings()
    if turn.progress:
        return Watch(), None
    turns = (*watch.turns, _seen(turn, settings))[-max(settings.kept, settings.near) :]
    period, repeats = _period(turns, settings)
    if period == 0 and (period := _near_period(turns, settings)):
        return _near_loop(watch, period, settings)
    if period == 0:
        calm = watch.calm + 1
        found = 0 if calm >= settings.kept else watch.found
        return Watch(turns, found, calm), None
    return _found(Watch((), watch.found, 0), period, repeats, settings)


def _near_loop(watch: Watch, period: int, settings: LoopSettings) -> tuple[Watch, Loop]:
    """Return a near-loop. Lists and counters may look like one, so responses do not escalate, and counting restarts."""
    near = settings.near
    what = "were nearly the same" if period == 1 else f"nearly repeated the same {period} turns"
    reason = f"{near} turns in a row {what}; do something else if they lead nowhere"
    loop = Loop(period=period, repeats=near // period, response=settings.strategy[0], reason=reason)
    return Watch((), watch.found, 0), loop


def _near_period(turns: Sequence[_Turn], settings: LoopSettings) -> int:
    """Return the period after which each of the newest turns resembles an earlier one, or 0 if one does not or polls.

    A period occurs at least twice in these turns.
    """
    newest = turns[-settings.near :]
    if len(newest) < settings.near:
        return 0
    for period in range(1, min(settings.periods, settings.near // 2) + 1):
        if all(
            not one.polls and not other.polls and similarity(one.text, other.text) > settings.alike
            for other, one in reversed([*zip(newest, newest[period:], strict=False)])
        ):
            return period
    return 0


def _found(watch: Watch, period: int, repeats: int, settings: LoopSettings) -> tuple[Watch, Loop]:
    response = settings.strategy[min(watch.found, len(settings.strategy) - 1)]
    what = "the same turn" if period == 1 else f"the same {period} turns"
    reason = f"{what} occurred {repeats} times in a row; do something else, or say why you cannot"
    loop = Loop(period=period, repeats=repeats, response=response, reason=reason)
    return replace(watch, found=watch.found + 1), loop


def _seen(turn: TurnSeen, settings: LoopSettings) -> _Turn:
    if not turn.calls:
        return _Turn("", turn.text, 0)
    polls = [settings.polling.get(call.tool, 0) for call in turn.calls]
    shown = "\n".join(
        f"{call.tool} {json.dumps(dict(call.arguments), sort_keys=True)}\n{call.result}"
        for call in turn.calls
    )
    ends = shown if len(shown) <= 2 * _ENDS else shown[:_ENDS] + shown[-_ENDS:]
    return _Turn("\n".join(signature(call) for call in turn.calls), ends, min(polls))


_ENDS: Final = 500
"""The number of characters kept at each end of a turn's calls."""


def signature(call: CallSeen) -> str:
    """Return a string that is identical for equal calls with equal results, regardless of argument order."""
    identity = json.dumps([call.tool, dict(call.arguments), call.result], sort_keys=True)
    return f"{call.tool} {sha256(identity.encode()).hexdigest()}"


def _period(turns: Sequence[_Turn], settings: LoopSettings) -> tuple[int, int]:
    """Return the shortest period that the newest turns repeat often enough, and its repeats; (0, 0) if none."""
    newest = list(reversed(turns))
    for period in range(1, settings.periods + 1):
        pattern = newest[:period]
        # A period of polls alone may repeat until one of its tools exceeds its allowance; a tool that occurs twice in a
        # period counts twice.
        came = Counter(turn.signature for turn in pattern)
        patience = min(turn.polls // came[turn.signature] + 1 for turn in pattern) if pattern else 0
        repeats = max(settings.repeats, patience)
        long = newest[: period * repeats]
        if len(long) == period * repeats and all(
            _same(long[at], long[at + period], settings) for at in range(len(long) - period)
        ):
            return period, repeats
    return 0, 0


def _same(one: _Turn, other: _Turn, settings: LoopSettings) -> bool:
    if one.signature or other.signature:
        return one.signature == other.signature
    return similarity(one.text, other.text) > settings.alike


_HEAD: Final = 2_000
"""The maximum number of characters compared at each end of a long text, to bound the work."""


def similarity(one: str, other: str) -> float:
    """Return the similarity of two strings from 0 to 1; only equal strings score 1."""
    if one == other:
        return 1.0
    longer = max(len(one), len(other))
    if min(len(one), len(other)) < longer / 2:
        # At most two thirds can be equal, so the exact number does not matter.
        return round(2 * min(len(one), len(other)) / (len(one) + len(other)) * 0.99, 6)
    from rapidfuzz.distance import Indel  # noqa: PLC0415  # once a call was made before

    alike = Indel.normalized_similarity(_bounded(one), _bounded(other))
    # The part not compared may differ, so two different texts are never reported as equal.
    return round(min(alike, 0.999_999), 6)


def _bounded(text: str) -> str:
    return text if len(text) <= 2 * _HEAD else text[:_HEAD] + text[-_HEAD:]


DOCUMENT_LIMIT: Final = 100
"""`MAX_ITERATIONS` in the document."""


@dataclass(frozen=True, slots=True)
class StepCount:
    """A task's total step count across all its runs, as stored in a checkpoint."""

    taken: int = 0

    def __post_init__(self) -> None:
        if self.taken < 0:
            raise BadInput(f"expected a step count of at least 0, got {self.taken}")


@dataclass(frozen=True, slots=True)
class TooManySteps:
    """The task needs more steps than allowed; `message` is the harness document's text."""

    most: int

    @property
    def message(self) -> str:
        """The message shown at the end of the run, taken from the harness document."""
        return f"Task exceeded max iterations ({self.most})"


def next_step(count: StepCount, most: int = DOCUMENT_LIMIT) -> StepCount | TooManySteps:
    """Return the count after one more step, or `TooManySteps` if `most` steps were already taken."""
    if most < 1:
        raise BadInput(f"expected a step limit of at least 1, got {most}")
    return TooManySteps(most) if count.taken >= most else StepCount(count.taken + 1)
