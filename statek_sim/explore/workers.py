"""Explores scenarios in worker processes; a task is one scenario under one profile."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

from statek_sim import progress
from statek_sim.backends.setup import attribute_at
from statek_sim.errors import BadInput, StatekSimError
from statek_sim.executors.executor import Executor, ProcessExecutor
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed
from statek_sim.explore.explorer import AGENT_KINDS, Bounds, Explorer
from statek_sim.explore.player import REPEATS, SURVIVES, Invariant, is_sometimes, sometimes
from statek_sim.explore.result import Explored
from statek_sim.scenario.schema import Scenario

Pair = tuple[Scenario, str]
"""A scenario and the profile to explore it under."""


NOT_VARIED: Final = f"for the agent engine, expected --kind {', '.join(AGENT_KINDS)}"


@dataclass(frozen=True, slots=True)
class _Work:
    """A worker's function, which explores the scenario at an index in `pairs`."""

    pairs: Sequence[Pair]
    own: tuple[str, ...]
    bounds: Bounds

    def __call__(self, place: int) -> Explored:
        """Explore the scenario at this index."""
        progress.afresh()
        return explore_one(*self.pairs[place], own=self.own, bounds=self.bounds)


def own_invariants(names: Sequence[str]) -> dict[str, Invariant]:
    """Import invariants given as `module:attribute`; raises `BadInput` for an invalid one."""
    found: dict[str, Invariant] = {}
    for name in names:
        if ":" not in name:
            raise BadInput(
                f"--invariant {name!r}: expected 'module:attribute', a callable that takes a variation"
            )
        invariant = attribute_at("--invariant", name)
        if not callable(invariant):
            raise BadInput(f"--invariant {name!r}: expected a callable, got {invariant!r}")
        found[name] = _guarded(name, invariant)
    return found


class _InvariantFailed(StatekSimError):
    """A user's invariant raised an error or returned the wrong type. Not a `BadInput`, which would skip a variation."""


def _guarded(name: str, invariant: Invariant) -> Invariant:
    """Wrap an invariant so that its own errors raise `_InvariantFailed` instead of being blamed on the runtime."""

    def asked(variation: Any) -> str | None:
        try:
            answer: object = invariant(variation)
        except Exception as error:  # the user's code
            raise _InvariantFailed(f"--invariant {name!r}: raised {type(error).__name__}: {error}") from error
        if answer is None or isinstance(answer, str):
            return answer
        if is_sometimes(invariant):
            return str(answer)
        raise _InvariantFailed(
            f"--invariant {name!r}: expected a string or None, got {type(answer).__name__}"
        )

    return sometimes(asked) if is_sometimes(invariant) else asked


def explore_one(scenario: Scenario, profile: str, *, own: Sequence[str], bounds: Bounds) -> Explored:
    """Explore one scenario under one profile; if that is impossible, the result's `problem` is the reason."""
    agents = scenario.engine == "agent"
    if agents and not set(AGENT_KINDS) & set(bounds.kinds):
        return _not_explored(scenario, profile, NOT_VARIED)
    try:
        return Explorer(scenario, profile, own_invariants(own), bounds).explore()
    except _InvariantFailed as error:
        raise BadInput(str(error)) from None
    except BadInput as error:
        if not agents:
            raise
        # Parts of its agent have no saved state.
        return _not_explored(scenario, profile, str(error))
    except StatekSimError as error:
        return _not_explored(scenario, profile, f"{type(error).__name__}: {error}")


def _not_explored(scenario: Scenario, profile: str, why: str) -> Explored:
    return Explored(id=scenario.id, suite=scenario.suite, profile=profile, points=0, proven={}, problem=why)


def explore_all(
    pairs: Sequence[Pair],
    *,
    own: Sequence[str] = (),
    bounds: Bounds | None = None,
    limits: WatchdogLimits | None = None,
    executor: Executor | None = None,
) -> Generator[Explored, None, None]:
    """Explore each pair and yield the results in order; any executor gives the same results.

    `own` are the names of the user's invariants, `limits` the machine resources for one scenario. The default executor
    uses one process per core.
    """
    work = _Work(pairs, tuple(own), bounds or Bounds())
    own_invariants(own)
    runs_it: Executor = ProcessExecutor() if executor is None else executor
    places = ((place,) for place in range(len(pairs)))
    with closing(runs_it.map(work, places, limits=limits)) as came:
        for pair, one in zip(pairs, came, strict=True):
            if isinstance(one, Killed):
                yield replace(_not_explored(*pair, str(one)), killed=True)
            else:
                yield one


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of replaying a saved failure. `message` describes the violation, or is None if it is fixed.

    `absent` lists deviations that no longer apply to the run.
    """

    scenario: Scenario
    profile: str
    message: str | None
    absent: tuple[str, ...] = ()

    @property
    def fixed(self) -> bool:
        """Whether the invariant now holds."""
        return self.message is None


def replay(scenario: Scenario) -> Replayed:
    """Replay a saved failure. Raises `BadInput` for a scenario without `violates`."""
    where = scenario.place
    name = scenario.violates
    if not name:
        raise BadInput(f"{where}: missing 'violates'; expected the invariant that the deviations violate")
    known = {*_built_in(scenario), REPEATS, SURVIVES}
    if ":" not in name and name not in known:
        raise BadInput(
            f"{where}: violates: unknown invariant {name!r}; expected one of {', '.join(sorted(known))}"
        )
    own = own_invariants([name]) if ":" in name else {}
    profile = scenario.profiles[0]
    try:
        message, absent = Explorer(scenario, profile, own).replay(name, scenario.deviations)
    except _InvariantFailed as error:
        raise BadInput(f"{where}: {error}") from None
    except StatekSimError:
        raise
    except Exception as error:
        # The engine fails without any deviation.
        if name != SURVIVES:
            raise
        message, absent = f"{type(error).__name__}: {error}", ()
    return Replayed(scenario, profile, message, tuple(absent))


def _built_in(scenario: Scenario) -> Mapping[str, Invariant]:
    # Without an agent-engine scenario, JSON Schema validation is not loaded.
    if scenario.engine == "agent":
        from statek_sim.explore.agent_player import AGENT_INVARIANTS  # noqa: PLC0415

        return AGENT_INVARIANTS
    from statek_sim.explore.invariants import BUILT_IN  # noqa: PLC0415

    return BUILT_IN
