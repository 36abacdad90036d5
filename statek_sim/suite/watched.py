"""Runs scenarios in worker processes under a watchdog.

A scenario that hangs or exhausts the machine fails; the other scenarios continue.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from statek_sim.backends.record import RunError, RunRecord, UsageRecord
from statek_sim.backends.run import load_for
from statek_sim.errors import StatekSimError
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed, Pool
from statek_sim.scenario.load import expectations_for
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.expectations import compare
from statek_sim.suite.result import Mismatch, ScenarioResult
from statek_sim.trace import packed, unpacked

Pair = tuple[Scenario, Profile]
"""A scenario and the profile under which it runs."""

BROKEN = "BrokenRun"
"""The `error.type` of a run with an unexpected exception: a bug in this package, which no scenario can expect."""
KILLED = "KilledByWatchdog"
"""The `error.type` of a run that the watchdog ended. A scenario that expects this error still fails."""


class Runner(Protocol):
    """Runs one scenario: `run_one` with all other arguments bound."""

    def __call__(self, scenario: Scenario, profile: Profile) -> ScenarioResult:
        """Run the scenario and return its result."""
        ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """The result that a worker sends to its parent, without the scenario, which the parent already has.

    The record is pickled separately.
    """

    record: bytes
    mismatches: tuple[Mismatch, ...]
    seconds: float
    preset: str | None

    def result(self, scenario: Scenario, profile: Profile) -> ScenarioResult:
        """Return the complete result."""
        # Written by our own worker.
        record, events = pickle.loads(self.record)
        return ScenarioResult(
            scenario=scenario,
            profile=profile,
            record=replace(record, events=unpacked(events)),
            mismatches=self.mismatches,
            seconds=self.seconds,
            preset=self.preset,
        )


@dataclass(frozen=True, slots=True)
class _Broken:
    """The unexpected exception that a worker reports to its parent, with its location in the code."""

    why: str

    @property
    def error(self) -> RunError:
        """The error for the run's record."""
        return RunError(type=BROKEN, message=self.why)


@dataclass(frozen=True, slots=True)
class _Runs:
    """The task of a worker that has the scenario list from the start; it is called with an index."""

    pairs: Sequence[Pair]
    run: Runner

    def __call__(self, place: int) -> _Answer | _Broken:
        return _answer(self.run, *self.pairs[place])


@dataclass(frozen=True, slots=True)
class _One:
    """The task of a worker to which each scenario is sent."""

    run: Runner

    def __call__(self, scenario: Scenario, profile: Profile) -> _Answer | _Broken:
        return _answer(self.run, scenario, profile)


def _tried(run: Runner, scenario: Scenario, profile: Profile) -> ScenarioResult | _Broken:
    """Run one scenario; an unexpected exception is returned, so that other scenarios can continue."""
    try:
        return run(scenario, profile)
    except (StatekSimError, OSError):
        raise
    except Exception as error:  # noqa: BLE001  # any error
        return _broken(error)


def _broken(error: Exception) -> _Broken:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return _Broken(
        f"{type(error).__name__}: {error} (in {Path(last.filename).name}:{last.lineno}): this is a bug in "
        "statek-sim, not in the scenario; please report it"
    )


def _answer(run: Runner, scenario: Scenario, profile: Profile) -> _Answer | _Broken:
    result = _tried(run, scenario, profile)
    if isinstance(result, _Broken):
        return result
    try:
        record = pickle.dumps(
            (replace(result.record, events=()), packed(result.record.events)), pickle.HIGHEST_PROTOCOL
        )
    except Exception as error:  # noqa: BLE001  # a value of a job that no process can be sent
        return _broken(error)
    return _Answer(record, result.mismatches, result.seconds, result.preset)


def run_watched(
    pairs: Sequence[Pair],
    run: Runner,
    limits: WatchdogLimits | None,
    *,
    seed: int | None = None,
    workers: int | None = None,
) -> Iterator[ScenarioResult]:
    """Yield the result of each pair, in order; an exception from `run` is raised at its position.

    Without `limits`, or if `run` cannot be sent to a worker, everything runs in this process. `workers` is the number
    of processes, None for one per core; the results do not depend on it. `seed` is as in `run`.
    """
    prepare = partial(load_for, [scenario for scenario, _ in pairs])
    pool = Pool(_Runs(pairs, run), limits=limits, workers=workers, prepare=prepare)
    if limits is None or not pool.possible:
        for scenario, profile in pairs:
            tried = _tried(run, scenario, profile)
            yield _failed(scenario, profile, tried.error, seed=seed) if isinstance(tried, _Broken) else tried
        return
    with pool:
        came = pool.map((place,) for place in range(len(pairs)))
        for (scenario, profile), answer in zip(pairs, came, strict=True):
            yield _result(scenario, profile, answer, seed=seed)


class WatchedRunner:
    """Runs scenarios one after another in a worker process, which `close` ends.

    `run`, `limits` and `seed` are as in `run_watched`.
    """

    def __init__(self, run: Runner, limits: WatchdogLimits, *, seed: int | None = None) -> None:
        self._seed = seed
        self._pool = Pool(_One(run), limits=limits, workers=1)
        self._here = None if self._pool.possible else run

    def __call__(self, scenario: Scenario, profile: Profile) -> ScenarioResult:
        """Run one scenario and return its result; in this process if `run` cannot be sent to a worker."""
        if self._here is not None:
            return self._here(scenario, profile)
        answer = self._pool.run(scenario, profile)
        return _result(scenario, profile, answer, seed=self._seed)

    def close(self) -> None:
        """Stop the worker process."""
        self._pool.close()


def _result(
    scenario: Scenario,
    profile: Profile,
    answer: _Answer | Killed | _Broken,
    *,
    seed: int | None,
) -> ScenarioResult:
    if isinstance(answer, Killed):
        return killed(scenario, profile, answer, seed=seed)
    if isinstance(answer, _Broken):
        return _failed(scenario, profile, answer.error, seed=seed)
    return answer.result(scenario, profile)


def killed(scenario: Scenario, profile: Profile, why: Killed, *, seed: int | None) -> ScenarioResult:
    """Return the result of a killed run: failed, regardless of expectations, and without a record."""
    return _failed(scenario, profile, RunError(type=KILLED, message=str(why)), seconds=why.after, seed=seed)


def _failed(
    scenario: Scenario, profile: Profile, error: RunError, *, seconds: float = 0.0, seed: int | None
) -> ScenarioResult:
    record = RunRecord(
        scenario=scenario.id,
        profile=profile,
        seed=scenario.seed if seed is None else seed,
        backend="reference",
        jobs={},
        items={},
        llm_calls=0,
        idle=False,
        settled=False,
        usage=UsageRecord(),
        digest="",
        events=(),
        error=error,
    )
    found = compare(record, expectations_for(scenario, profile))
    # Otherwise a scenario that expects an error with any text would pass.
    own = next((mismatch for mismatch in found if mismatch.keypath == ("error",)), None)
    why_failed = own or Mismatch(keypath=("error",), expected=None, actual=error.message)
    return ScenarioResult(
        scenario=scenario, profile=profile, record=record, mismatches=(why_failed,), seconds=seconds
    )
