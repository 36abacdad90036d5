"""A public checker that every circuit breaker passes, ours or a user's, through a small adapter.

def test_my_breaker_lets_one_probe_through() -> None:
    check_breaker(lambda now: MyAdapter(now), cooldown=60.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, NoReturn, Protocol, assert_never

from statek_sim.adapters import with_methods
from statek_sim.errors import BadInput, ContractViolation

CALLS: Final = 4
"""Concurrent calls that are explored."""
WAITS: Final = 2
"""Cooldowns that may pass in between."""


class Finding(StrEnum):
    """What can be wrong with a breaker."""

    TWO_PROBES = "more than one probe"
    LATE_RESULT = "changed by a late result"
    LEAKS = "open, and lets a call through"
    WEDGED = "wedged: no call after the cooldown"
    SHUT = "refuses while nothing is wrong"
    RAISES = "raises"


class BreakerAdapter(Protocol):
    """One breaker that opens at the first failure, for the checker."""

    def start(self) -> object | None:
        """Begin a call: return what stands for it, or None when the breaker does not let it through."""

    def finish(self, call: object, *, failed: bool) -> None:
        """End a call that `start` let through."""


MakeBreaker = Callable[[Callable[[], float]], BreakerAdapter]
"""Takes a clock (seconds, rising) and returns a fresh breaker."""

_Act = tuple[Literal["start", "succeed", "fail"], int] | tuple[Literal["wait"], int]


def check_breaker(make_breaker: MakeBreaker, *, cooldown: float, lease: float | None = None) -> int:
    """Explore a breaker in every interleaving of up to 4 calls and 2 waits; return how many were tried.

    `make_breaker` returns a fresh adapter whose breaker opens at the first failure and lets a probe through when
    `cooldown` seconds have passed. `lease`: after how many seconds a probe that does not end is given up; None: never,
    and then calls may be refused as long as it is out. A wait is longer than both. Raises `ContractViolation` with the
    shortest interleaving in which the breaker raises, refuses a call while nothing is wrong, lets a call through while
    it is open, lets more than one probe through, stays shut after a cooldown, or lets itself be changed by a late
    result; `BadInput` for an adapter without a method.
    """
    if not cooldown > 0 or (lease is not None and not lease > 0):
        raise BadInput(f"a cooldown and a lease are above 0 seconds, not {cooldown!r} and {lease!r}")
    longest = max(cooldown, lease or 0.0) * 1.5
    tried, wrong = 0, None
    for acts in _whole():
        tried += 1
        wrong = _played(make_breaker, acts, longest, leased=lease is not None)
        if wrong is not None:
            break
    if wrong is not None:
        _shortest(make_breaker, longest, wrong, leased=lease is not None)
    return tried


def breaker_findings(
    make_breaker: MakeBreaker, *, cooldown: float, lease: float | None = None, acts: int = 7
) -> dict[Finding, str]:
    """Return everything that is wrong with a breaker in interleavings of up to `acts` acts, each with its shortest one.

    The rest is as with `check_breaker`, which raises at the first.
    """
    longest = max(cooldown, lease or 0.0) * 1.5
    found: dict[Finding, str] = {}
    for length in range(1, acts + 1):
        for played in _of_length(length):
            wrong = _played(make_breaker, played, longest, leased=lease is not None)
            if wrong is not None:
                found.setdefault(wrong.finding, wrong.sentence)
    return found


def _shortest(make_breaker: MakeBreaker, wait: float, known: _Wrong, *, leased: bool) -> NoReturn:
    """Raise for the shortest interleaving that shows anything wrong; there is one, `known`."""
    for length in range(1, len(known.acts)):
        for acts in _of_length(length):
            found = _played(make_breaker, acts, wait, leased=leased)
            if found is not None:
                raise ContractViolation(found.sentence)
    raise ContractViolation(known.sentence)


# -- interleavings -----------------------------------------------------------------------------------------------


def _whole() -> Iterator[tuple[_Act, ...]]:
    """Yield every interleaving of `CALLS` calls that all end, and up to `WAITS` waits, with a last call at the end."""
    yield from _grown((), 0, frozenset(), 0, None)


def _of_length(length: int) -> Iterator[tuple[_Act, ...]]:
    """Yield the interleavings of `length` acts that end with a start: nothing else shows what a breaker thinks."""
    return (acts for acts in _grown((), 0, frozenset(), 0, length) if acts[-1][0] == "start")


def _grown(
    acts: tuple[_Act, ...], started: int, out: frozenset[int], waits: int, length: int | None
) -> Iterator[tuple[_Act, ...]]:
    """Yield what `acts` may become. Calls start in the order of their numbers: they are alike."""
    if len(acts) == length or (length is None and started == CALLS and not out and waits == WAITS):
        yield acts
        return
    if started < CALLS:
        yield from _grown((*acts, ("start", started)), started + 1, out | {started}, waits, length)
    for call in sorted(out):
        for how in ("succeed", "fail"):
            act: _Act = ("succeed", call) if how == "succeed" else ("fail", call)
            yield from _grown((*acts, act), started, out - {call}, waits, length)
    # Two waits in a row are one.
    if waits < WAITS and not (acts and acts[-1][0] == "wait"):
        yield from _grown((*acts, ("wait", waits)), started, out, waits + 1, length)


# -- what a breaker has to do ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Expected:
    """What the contract says, step by step. A call is the generation in which it was let through."""

    leased: bool
    state: Literal["closed", "open", "half-open"] = "closed"
    cooled: bool = False
    generation: int = 0
    probe: int | None = None
    probe_expired: bool = False
    let_through: dict[int, int] = field(default_factory=dict)
    late: bool = False
    """Whether a late result was told since the state last changed."""

    def lets_through(self, call: int) -> bool:
        """Return whether `call` is let through now."""
        if self.state == "closed":
            allowed = True
        elif self.state == "open":
            allowed = self.cooled
        else:
            allowed = self.probe_expired
        if allowed:
            if self.state != "closed":
                self.state, self.probe, self.probe_expired = "half-open", call, False
            self.let_through[call] = self.generation
        return allowed

    def ended(self, call: int, *, failed: bool) -> None:
        """Take note of a call's end."""
        if self.let_through[call] != self.generation or (self.state == "half-open" and call != self.probe):
            self.late = True
            return
        if failed:
            self.state, self.cooled = "open", False
        elif self.state == "half-open":
            self.state = "closed"
        else:
            return
        self.late = False
        self.generation += 1

    def waited(self) -> None:
        """Let a cooldown, and a lease, pass."""
        self.cooled = True
        self.probe_expired = self.leased and self.state == "half-open"


@dataclass(frozen=True, slots=True)
class _Wrong:
    """An interleaving up to the act that shows what is wrong, and the sentence about it."""

    acts: tuple[_Act, ...]
    finding: Finding
    sentence: str


def _played(make_breaker: MakeBreaker, acts: Sequence[_Act], wait: float, *, leased: bool) -> _Wrong | None:
    """Play `acts` on a fresh breaker beside the contract; return what is wrong first."""
    now = [0.0]
    breaker = with_methods(make_breaker(lambda: now[0]), ("start", "finish"), of="BreakerAdapter")
    out: dict[int, object] = {}
    try:
        return _first_wrong(breaker, acts, now, wait, out, leased=leased)
    finally:
        # What is still out when nobody looks any more ends well: a generator left alone would complain. What is wrong
        # with that another interleaving shows.
        for call in out.values():
            with suppress(Exception):
                breaker.finish(call, failed=False)


def _first_wrong(
    breaker: BreakerAdapter,
    acts: Sequence[_Act],
    now: list[float],
    wait: float,
    out: dict[int, object],
    *,
    leased: bool,
) -> _Wrong | None:
    expected = _Expected(leased)
    made: set[int] = set()
    for number, act in enumerate(acts):
        done = tuple(acts[: number + 1])
        try:
            wrong = _wrong_after(breaker, act, now, wait, out, expected, made)
        except Exception as error:  # noqa: BLE001  # a user's breaker
            made.add(act[1])
            wrong = Finding.RAISES, f"the breaker raised {type(error).__name__}: {error}"
        if wrong is not None:
            return _Wrong(done, wrong[0], f"{_words(done, made)}: {wrong[1]}")
    return None


def _wrong_after(
    breaker: BreakerAdapter,
    act: _Act,
    now: list[float],
    wait: float,
    out: dict[int, object],
    expected: _Expected,
    made: set[int],
) -> tuple[Finding, str] | None:
    """Play one act; return what it shows to be wrong. `made` are the calls that were let through."""
    match act[0]:
        case "wait":
            now[0] += wait
            expected.waited()
        case "start":
            before = (expected.state, expected.late)
            call = breaker.start()
            if call is not None:
                out[act[1]] = call
                made.add(act[1])
            allowed = expected.lets_through(act[1])
            if (call is not None) != allowed:
                return _sentence(*before, allowed=allowed)
        case "succeed" | "fail":
            if act[1] in out:
                breaker.finish(out.pop(act[1]), failed=act[0] == "fail")
                expected.ended(act[1], failed=act[0] == "fail")
        case _:
            assert_never(act[0])
    return None


def _sentence(state: str, late: bool, *, allowed: bool) -> tuple[Finding, str]:
    if allowed and state == "closed":
        finding, what = Finding.SHUT, "the breaker refused a call though it has to be closed"
    elif allowed:
        finding, what = Finding.WEDGED, "the breaker refused a call though the cooldown had passed"
    elif state == "half-open":
        finding, what = Finding.TWO_PROBES, "the breaker let a call through while its probe was out"
    else:
        finding, what = Finding.LEAKS, "the breaker let a call through though it has to be open"
    if late:
        return Finding.LATE_RESULT, f"{what}: a late result changed it"
    return finding, what


def _words(acts: Sequence[_Act], made: set[int]) -> str:
    sentences = []
    for act in acts:
        if act[0] == "wait":
            sentences.append("the cooldown passes")
        elif act[0] == "start" or act[1] in made:
            verb = {"start": "starts", "succeed": "succeeds", "fail": "fails"}[act[0]]
            sentences.append(f"call {act[1] + 1} {verb}")
    return ", ".join(sentences)
