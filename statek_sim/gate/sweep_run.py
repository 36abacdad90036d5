"""Running a sweep: every scenario under every setting, over processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial

from statek_sim import progress
from statek_sim.analysis.rerun import Replay
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import load_for, run_scenario
from statek_sim.errors import BadInput
from statek_sim.executors.executor import Executor
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed
from statek_sim.executors.processes import ProcessExecutor
from statek_sim.gate.burnt import burnt
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.sweep import Outcome, Sweep, Tried, limits_of, settings, sweep
from statek_sim.gate.sweep_ranges import Axis
from statek_sim.gate.trial import stops
from statek_sim.gate.watched_harness import Checks, WatchedHarness
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import HarnessLimits
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.usage.pricing import PriceList

HEALTHY, RUNAWAY = "healthy", "runaway"
"""Tags of the scenarios that a sweep is about."""


class SweepStopped(Exception):
    """A sweep was stopped before there was anything to weigh; the text says how far it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One scenario to be tried under settings of a sweep: those at these places."""

    scenario: Scenario
    profile: Profile
    preset: str
    x: Axis
    y: Axis | None
    places: range
    prices: PriceList | None


def run_sweep(
    preset: GatedPreset,
    scenarios: Sequence[Scenario],
    profile: Profile,
    axes: Sequence[Axis],
    *,
    prices: PriceList | None = None,
    executor: Executor | None = None,
    watchdog: WatchdogLimits | None = None,
    progressed: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Return the sweep of a preset over one axis or two; limits that are not swept stay the preset's.

    `executor` runs it, None: a process per core that this process may use; the result is the same with any. Scenarios
    with neither tag are left out; `BadInput` when there are no healthy or no runaway ones, as then there is nothing to
    weigh, and for a scenario that one run of is more than the `watchdog` allows. `progressed` hears how many pieces
    of the work are done, and of how many.

    Ctrl-C ends it early: the sweep is then one of the scenarios that were tried under every setting. Where these are
    nothing to weigh it is `SweepStopped`.
    """
    x, y = axes[0], axes[1] if len(axes) > 1 else None
    weighed = _weighed(scenarios, profile)
    runs_it: Executor = ProcessExecutor() if executor is None else executor
    size = len(settings(x, y))
    # Parts of a scenario's settings, so that one that takes long does not keep the others waiting.
    parts = min(runs_it.width, len(x.values))
    tasks = [
        Task(
            scenario=scenario,
            profile=profile,
            preset=preset.runs_as,
            x=x,
            y=y,
            places=range(part, size, parts),
            prices=prices,
        )
        for scenario in weighed
        for part in range(parts)
    ]
    came = _attempts(tasks, runs_it, watchdog, progressed)
    whole = [n for n in range(len(weighed)) if all(n * parts + part in came for part in range(parts))]
    tried = [_together(weighed[n], [came[n * parts + part] for part in range(parts)]) for n in whole]
    left = len(weighed) - len(whole)
    if left and len({trial.runaway for trial in tried}) < 2:
        raise SweepStopped(
            f"stopped: {len(whole)} of {len(weighed)} scenarios were tried under every setting, which is nothing to "
            "weigh yet"
        )
    found = sweep(tried, preset.limits, x, y, preset=preset.name, profile=profile)
    return replace(found, left=left)


def attempt(task: Task) -> tuple[Outcome, ...]:
    """Return what becomes of a task's scenario under each of its settings.

    A setting that would give the harness the same answers as one that ran before is not run again.
    """
    replay = Replay(scenario=task.scenario, profile=task.profile, preset=task.preset)
    known: list[tuple[Checks, Outcome]] = []
    return tuple(_outcome(task, replay, limits, known) for limits in _grid(task, replay))


@dataclass(frozen=True, slots=True)
class _Attempts:
    """What a worker does: the task at a place of a list that it was started with."""

    tasks: Sequence[Task]

    def __call__(self, place: int) -> tuple[Outcome, ...]:
        return attempt(self.tasks[place])


def watched_run(replay: Replay, limits: HarnessLimits) -> tuple[RunRecord, Checks]:
    """Run a scenario under these limits; return what it left behind and every check of the harness."""
    progress.afresh()
    made: list[WatchedHarness] = []

    def watching(harness: LLM_Harness) -> LLM_Harness:
        made.append(WatchedHarness(limits, harness.rule))
        return made[0]

    record = run_scenario(replay.scenario, replay.profile, preset=replay.preset, harness=watching)
    return record, made[0].checks()


def outcome_of(record: RunRecord, scenario: Scenario, prices: PriceList | None) -> Outcome:
    """Return what a sweep wants to know of a run."""
    stopped = {stop.job for stop in stops(record)}
    used = burnt(record, scenario.goes_bad, prices)
    return Outcome(
        stopped=bool(stopped),
        unstopped=not stopped.issuperset(scenario.goes_bad),
        tokens=used.tokens,
        cost=used.cost,
    )


def reads_errors(scenario: Scenario) -> bool:
    """Return whether a scenario has tools of its own, whose handlers could read the number in a harness message."""
    return any(":" in tool for agent in scenario.agents.values() for tool in agent.tools)


def _weighed(scenarios: Sequence[Scenario], profile: Profile) -> list[Scenario]:
    found = [
        scenario
        for scenario in scenarios
        if scenario.under(profile) and {HEALTHY, RUNAWAY} & set(scenario.tags)
    ]
    for tag in (HEALTHY, RUNAWAY):
        if not any(tag in scenario.tags for scenario in found):
            raise BadInput(
                f"--sweep: none of {len(scenarios)} scenarios has the tag {tag!r} under profile {profile}; expected "
                "healthy scenarios and runaways, to weigh one against the other"
            )
    return found


def _grid(task: Task, replay: Replay) -> Iterator[HarnessLimits]:
    """Yield the limits of every setting; a limit that the scenario states itself stays."""
    own, every = replay.limits, settings(task.x, task.y)
    swept = [axis.limit for axis in (task.x, task.y) if axis is not None]
    stated = {limit.value: getattr(own, limit.value) for limit in swept if replay.states(limit)}
    for place in task.places:
        yield limits_of(every[place], own, task.x, task.y, stated)


def _outcome(
    task: Task, replay: Replay, limits: HarnessLimits, known: list[tuple[Checks, Outcome]]
) -> Outcome:
    message_matters = reads_errors(task.scenario)
    for checks, outcome in reversed(known):
        if checks.same_run(limits, message_matters=message_matters):
            return outcome
    record, checks = watched_run(replay, limits)
    outcome = outcome_of(record, task.scenario, task.prices)
    known.append((checks, outcome))
    return outcome


def _together(scenario: Scenario, parts: Sequence[tuple[Outcome, ...]]) -> Tried:
    """Return a scenario with the outcomes of its parts, in the order of the settings."""
    return Tried(
        name=f"{scenario.suite}/{scenario.id}",
        runaway=RUNAWAY in scenario.tags,
        outcomes=_interleaved(parts),
    )


def _interleaved(parts: Sequence[tuple[Outcome, ...]]) -> tuple[Outcome, ...]:
    size = sum(map(len, parts))
    return tuple(parts[place % len(parts)][place // len(parts)] for place in range(size))


def _attempts(
    tasks: Sequence[Task],
    executor: Executor,
    watchdog: WatchdogLimits | None,
    progressed: Callable[[int, int], None] | None,
) -> dict[int, tuple[Outcome, ...]]:
    """Return what came of the tasks, by their places; of those that were done when Ctrl-C came."""
    # Runaways take longest: begun first, they leave no worker without work at the end.
    places = sorted(range(len(tasks)), key=lambda place: (RUNAWAY not in tasks[place].scenario.tags, place))
    found: dict[int, tuple[Outcome, ...]] = {}
    prepare = partial(load_for, [task.scenario for task in tasks])
    attempts = executor.map(
        _Attempts(tasks), ((place,) for place in places), limits=watchdog, prepare=prepare
    )
    with closing(attempts), suppress(KeyboardInterrupt):
        for place, came in zip(places, attempts, strict=True):
            if isinstance(came, Killed):
                raise BadInput(f"--sweep: {tasks[place].scenario.id}: {came}")
            found[place] = came
            if progressed is not None:
                progressed(len(found), len(tasks))
    return found
