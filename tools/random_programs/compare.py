"""Compares random examples on the reference runtime and real STATEK versions, and shrinks those that differ.

Each version is compared in a separate process: the reference runtime needs its own process, and two interpreters keep
two processors busy.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from statek_sim.backends.installed.peer import Peer, installed_record, profile_of_peer
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.compare.facts import Difference
from statek_sim.compare.matrix import MOST_BY_CHANCE, agrees_again, compared
from statek_sim.errors import StatekSimError
from statek_sim.executors.executor import Executor, Pending, ProcessExecutor
from statek_sim.executors.pool import Killed
from statek_sim.scenario.check import check, jobs_of
from statek_sim.scenario.schema import Profile, Scenario, ScenarioText
from statek_sim.semantics import Profile as Behaviour
from statek_sim.semantics import profile_named
from tools.random_programs.draw import BATCH
from tools.random_programs.replies import Written
from tools.random_programs.search import example_batch, smallest

T = TypeVar("T")

_OPEN: Final[list[Peer]] = []
"""In a side's process: its interpreter with STATEK."""


class Side:
    """The interpreter `python` with a process that talks to it. Use as a context manager.

    A process that dies is replaced by one that reopens the interpreter. With an `executor`, its workers talk to their
    own interpreters, and it stays open. Raises `BadInput` for an interpreter without STATEK or whose version has no
    behaviour profile.
    """

    def __init__(self, python: str, executor: Executor | None = None) -> None:
        self._python = python
        self._own = executor is None
        self._executor: Executor = ProcessExecutor(1) if executor is None else executor
        try:
            self.version, self.profile = self.came(self.submit(_named))
        except BaseException:
            if self._own:
                self._executor.close()
            raise

    def submit(self, work: Callable[[Peer], T]) -> Pending[T]:
        """Call `work` in the process, one call at a time; it and its result are pickled."""
        return self._executor.submit(_with_peer if self._own else _with_own_peer, self._python, work)

    def came(self, pending: Pending[T]) -> T:
        """Wait for the result of work; raises StatekSimError for work that killed its process twice."""
        came = pending.result()
        if isinstance(came, Killed):
            raise StatekSimError(f"{self._python}: a comparison of random examples was {came}")
        return came

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._own:
            return
        if kind is None:
            self.came(self._executor.submit(_close))
        self._executor.close()


def _named(peer: Peer) -> tuple[str, Profile]:
    return peer.version, profile_of_peer(peer)


def _with_peer(python: str, work: Callable[[Peer], T]) -> T:
    if not _OPEN:
        _OPEN.append(Peer(python))
    return work(_OPEN[0])


def _with_own_peer(python: str, work: Callable[[Peer], T]) -> T:
    with Peer(python) as peer:
        return work(peer)


def _close() -> None:
    while _OPEN:
        _OPEN.pop().close()


MOST_SHOWN: Final = 3
"""The number of differences to shrink per version; each takes several hundred runs."""

HANDFUL: Final = 25
"""The number of examples sent to a side at a time."""

HANDFULS: Final = 8
"""The number of batches that a side has before the first result is awaited."""

Reference = RunRecord | str
"""The reference runtime's run of an example, or why it cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example: the `place`-th in a batch."""

    batch: int
    place: int
    written: Written

    @property
    def name(self) -> str:
        """The example's number, in generation order."""
        return f"random-{self.batch * BATCH + self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomDifference:
    """An example that differs; `smallest` is its shrunk version, or None if shrinking was not tried."""

    example: Example
    differences: tuple[Difference, ...]
    smallest: Written | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomRun:
    """All examples on one STATEK version. Examples in `varying` agreed in every repetition."""

    version: str
    profile: Profile
    examples: int
    differing: tuple[RandomDifference, ...]
    varying: tuple[RandomDifference, ...] = ()


def run_random(
    pythons: Sequence[str], count: int, number: int, executor: Executor | None = None
) -> tuple[RandomRun, ...]:
    """Compare `count` examples on each interpreter's STATEK; `number` selects the examples.

    An `executor`'s workers do the comparing, or else a process per interpreter. Raises BadInput for an interpreter
    without STATEK, or with a version that has no behaviour profile.
    """
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(python, executor)) for python in pythons]
        differing = _compared(sides, _handfuls(random_examples(count, number)))
        return tuple(_told(side, number, count, found) for side, found in zip(sides, differing, strict=True))


def _told(side: Side, number: int, count: int, found: list[RandomDifference]) -> RandomRun:
    varying = side.came(side.submit(partial(_varying, profile=side.profile, differing=found)))
    return RandomRun(
        version=side.version,
        profile=side.profile,
        examples=count,
        differing=_small(side, number, [one for one in found if one.example.name not in varying]),
        varying=tuple(one for one in found if one.example.name in varying),
    )


def _compared(sides: Sequence[Side], handfuls: Iterable[tuple[Example, ...]]) -> list[list[RandomDifference]]:
    """Return each side's differences. Examples are generated while earlier ones are compared."""
    found: list[list[RandomDifference]] = [[] for _ in sides]
    given: deque[list[Pending[list[RandomDifference]]]] = deque()

    def take() -> None:
        # In turn: a side whose answers nobody takes is given nothing more.
        for side, differing, pending in zip(sides, found, given.popleft(), strict=True):
            differing.extend(side.came(pending))

    for examples in handfuls:
        given.append(
            [side.submit(partial(_differing, profile=side.profile, examples=examples)) for side in sides]
        )
        if len(given) > HANDFULS:
            take()
    while given:
        take()
    return found


def _small(side: Side, number: int, differing: list[RandomDifference]) -> tuple[RandomDifference, ...]:
    work = partial(_made_small, profile=side.profile, number=number, differing=differing)
    return tuple(side.came(side.submit(work)))


def _handfuls(examples: Iterator[Example]) -> Iterator[tuple[Example, ...]]:
    while handful := tuple(islice(examples, HANDFUL)):
        yield handful


def random_examples(count: int, number: int) -> Iterator[Example]:
    """Yield `count` examples; a smaller count with the same `number` gives the first of these."""
    for batch in range(-(-count // BATCH)):
        for place, written in enumerate(example_batch(number, batch)):
            if batch * BATCH + place < count:
                yield Example(batch=batch, place=place, written=written)


def scenario_of(written: Written, name: str, profile: Profile) -> Scenario:
    """Return an example as a scenario; raises AssertionError if it is not a valid scenario file.

    For profiles without plain notifications, these are removed: see `examples.excluded`.
    """
    fields = {
        "id": name,
        "title": "A random example.",
        "profiles": [profile],
        **for_profile(written, profile),
    }
    text = ScenarioText.model_validate_json(json.dumps(fields))
    findings = check(text, Path("-"))
    assert not findings, f"{name}: {findings[0].message}"
    return Scenario.placed(text, jobs_of(text), suite="random", path=Path("-"), line=0, file_digest="")


def for_profile(written: Written, profile: Profile) -> Written:
    """Return an example without features that a profile lacks."""
    if profile_named(profile).plain_notifications:
        return written
    events: Any = written.get("events", [])
    return {**written, "events": [event for event in events if "notify" not in event]}


WAITING_PASS: Final = 0.3
"""Seconds between entries of a block that waits in warmup, in random examples only: on the real package each one takes
real time, and an example waits up to 90 seconds."""


def behaviour(profile: Profile) -> Behaviour:
    """Return the rules for random examples on both sides."""
    return replace(profile_named(profile), warmup_wait_pass_seconds=WAITING_PASS)


def reference(scenario: Scenario, profile: Profile) -> Reference:
    """Return an example's run, or why it cannot be compared, which also counts as a difference."""
    try:
        return run_scenario(scenario, behaviour(profile))
    except StatekSimError as error:
        return f"{type(error).__name__}: {error}"


def _differing(peer: Peer, profile: Profile, examples: Sequence[Example]) -> list[RandomDifference]:
    found = []
    for example in examples:
        different = differences_of(peer, profile, example.written, example.name)
        if different:
            found.append(RandomDifference(example=example, differences=different))
    return found


def _varying(peer: Peer, profile: Profile, differing: Sequence[RandomDifference]) -> set[str]:
    """Return the names of the examples that differed at random."""
    if len(differing) > MOST_BY_CHANCE:
        return set()
    return {
        found.example.name
        for found in differing
        if agrees_again(peer.interpreter, partial(_agrees, profile=profile, example=found.example))
    }


def _agrees(peer: Peer, profile: Profile, example: Example) -> bool:
    return not differences_of(peer, profile, example.written, example.name)


def _made_small(
    peer: Peer, profile: Profile, number: int, differing: Sequence[RandomDifference]
) -> list[RandomDifference]:
    """Return all differences, with the first of each kind shrunk; the kind is the field that differs."""
    kinds: set[str] = set()
    smaller = []
    for difference in differing:
        kind = difference.differences[0].field
        if kind not in kinds and len(kinds) < MOST_SHOWN:
            kinds.add(kind)
            smaller.append(
                made_small(
                    difference, number, lambda written, name: differences_of(peer, profile, written, name)
                )
            )
        else:
            smaller.append(difference)
    return smaller


def differences_of(peer: Peer, profile: Profile, written: Written, name: str) -> tuple[Difference, ...]:
    """Return the fields in which an example differs from its run on `peer`."""
    scenario = scenario_of(written, name, profile)
    ours = reference(scenario, profile)
    outcome = peer.run(scenario, behaviour(profile))
    theirs = installed_record(scenario, profile, outcome, seed=scenario.seed)
    if isinstance(ours, str):
        return (Difference("error", ours, None),)
    return compared(ours, theirs)


def made_small(
    found: RandomDifference, number: int, compare: Callable[[Written, str], tuple[Difference, ...]]
) -> RandomDifference:
    """Return the smallest example whose first difference is in the same field, with what `compare` finds for it."""
    field = found.differences[0].field
    last: dict[str, Any] = {}

    def wanted(written: Written) -> bool:
        different = compare(written, found.example.name)
        if not different or different[0].field != field:
            return False
        last["differences"] = different
        return True

    small = smallest(number, found.example.batch, wanted)
    if small is None:
        return found
    return RandomDifference(example=found.example, differences=last["differences"], smallest=small)
