"""Backtests of alerts: a drift is put into simulated runs, and every alert is held against when it began.

The runs are real ones of the loop, with its tools, its loop protection, its metering; only the model is drawn, from a
seed. What an alert costs is measured too: how often it comes while nothing drifts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import median
from typing import Final

from statek_sim.agent.effects import Advice, Parts, TurnFacts, TurnWatcher
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.reliability import loop_watcher
from statek_sim.agent.telemetry.bands import WINDOW, Bands, Status, Window, judged
from statek_sim.agent.telemetry.facts import TaskFacts, task_facts
from statek_sim.agent.telemetry.measures import METRICS, MetricName
from statek_sim.intervals import wilson
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, computed, fault, text, tool_call
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.values import JSON

SEEDS: Final = 8
"""Fleets that are drawn."""

CALM: Final = 200
"""Tasks before the drift begins, about: up to a window more, so that it begins anywhere in one."""

DRIFTING: Final = 100
"""Tasks after it."""

WORTH: Final = Decimal("0.004")
"""What a task is worth in US dollars; a calm one costs about a third of that."""

_PRICE: Final = Decimal(2)
"""US dollars per million tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How a fleet behaves: means and chances of one task. `dearness` is what its tokens cost, times the calm price."""

    steps: float = 4.0
    tool_errors: float = 0.02
    loops: float = 0.0
    words: float = 30.0
    failures: float = 0.02
    dearness: int = 1


CALMLY: Final = Behaviour()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What changes, and which alert is for it. `growth` is by how much more words there are after each ten tasks."""

    metric: MetricName
    what: str
    after: Behaviour
    growth: float = 0.0


DRIFTS: Final = (
    Drift(
        metric="steps_per_task",
        what="tasks take 8 steps instead of 4",
        after=replace(CALMLY, steps=8.0),
    ),
    Drift(
        metric="tool_error_rate",
        what="20 % of calls fail instead of 2 %",
        after=replace(CALMLY, tool_errors=0.20),
    ),
    Drift(
        metric="loop_detections",
        what="1 task in 10 goes round in circles",
        after=replace(CALMLY, loops=0.10),
    ),
    Drift(
        metric="tokens_per_subtask",
        what="replies grow by 10 % with each ten tasks",
        after=CALMLY,
        growth=0.10,
    ),
    Drift(
        metric="completion_rate",
        what="20 % of tasks fail instead of 2 %",
        after=replace(CALMLY, failures=0.20),
    ),
    Drift(
        metric="cost_per_task",
        what="a model that costs four times as much",
        after=replace(CALMLY, dearness=4),
    ),
)
"""One for every alert."""


# -- a simulated fleet ------------------------------------------------------------------------------------------


class _Model:
    """Draws what the model says in one task after another."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._plan: list[Reply] = []

    def begin(self, behaviour: Behaviour, words: float) -> None:
        """Draw the replies of the next task."""
        draw = self._draw
        steps = max(1, round(draw.gauss(behaviour.steps, behaviour.steps / 3)))
        calls = [
            tool_call("work", part=at, note=self._said(words), fails=draw.random() < behaviour.tool_errors)
            for at in range(1, steps)
        ]
        if draw.random() < behaviour.loops:
            calls += [tool_call("work", part=0, note=self._said(words), fails=False)] * 3
        last = fault(400) if draw.random() < behaviour.failures else text(f"Done. {self._said(words)}")
        self._plan = [*calls, last]

    def _said(self, words: float) -> str:
        """Return so many words, about, which are no others' repeated: that would be a loop."""
        draw = self._draw
        count = max(1, round(draw.gauss(words, words / 5)))
        return " ".join(str(draw.randrange(1000)) for _ in range(count))

    def __call__(self, request: ChatRequest) -> Reply:
        return self._plan.pop(0)


def work(part: int, note: str, *, fails: bool) -> JSON:
    """Do a part of the task."""
    if fails:
        raise OSError("the disk is full")
    return f"part {part} is done"


def _watcher() -> TurnWatcher:
    """Return loop protection that begins anew with every run."""
    look = loop_watcher()

    def watch(turn: TurnFacts) -> Advice | None:
        nonlocal look
        if turn.turn == 1:
            look = loop_watcher()
        return look(turn)

    return watch


class Fleet:
    """Agents that work on tasks, drawn from `seed`; equal seeds draw equal fleets."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self._model = _Model(self.draw)
        self._dearness = 1

    def tasks(self, count: int, behaviour: Behaviour = CALMLY, *, growth: float = 0.0) -> list[TaskFacts]:
        """Work on so many tasks and return what their trace tells."""
        agent = AgentHarness(
            ScriptedLLM([computed(self._model).forever()]),
            tools=[work],
            parts=Parts(watchers=[_watcher()]),
            rescue=False,
            protection=False,
            context=None,
        )
        for at in range(count):
            self._model.begin(behaviour, behaviour.words * (1 + growth) ** (at // 10))
            agent.run(f"Task {at}.")
        return task_facts(
            agent.trace.events,
            cost=lambda model, prompt, completion: (
                (prompt + completion) * _PRICE * behaviour.dearness / 1_000_000
            ),
        )


# -- alerts held against drifts ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """What one alert did.

    Delays are tasks from the beginning of the drift, one per fleet that was alarmed. `false_alarms` are windows, of
    `calm_windows`, with an alert while nothing drifted.
    """

    metric: MetricName
    drift: str
    fleets: int
    delays: tuple[int, ...]
    false_alarms: int
    calm_windows: int

    @property
    def missed(self) -> int:
        """Fleets whose drift raised no alert."""
        return self.fleets - len(self.delays)


@dataclass(frozen=True, slots=True)
class _Stream:
    """One fleet: calm tasks, then for each drift the tasks after it."""

    calm: Sequence[TaskFacts]
    after: Sequence[Sequence[TaskFacts]]


def backtest(*, size: int = WINDOW, seeds: int = SEEDS) -> list[Backtest]:
    """Return what every alert did in `seeds` fleets, judged in windows of `size` tasks."""
    streams = [_stream(seed, size) for seed in range(1, seeds + 1)]
    bands = Bands(value_per_task=WORTH)
    return [_tested(at, drift, streams, size, bands) for at, drift in enumerate(DRIFTS)]


def _stream(seed: int, size: int) -> _Stream:
    fleet = Fleet(seed)
    calm = fleet.tasks(CALM + fleet.draw.randrange(size))
    return _Stream(calm, [fleet.tasks(DRIFTING, drift.after, growth=drift.growth) for drift in DRIFTS])


def _tested(at: int, drift: Drift, streams: Sequence[_Stream], size: int, bands: Bands) -> Backtest:
    delays: list[int] = []
    alarms = calm_windows = 0
    for stream in streams:
        began = len(stream.calm)
        windows = judged([*stream.calm, *stream.after[at]], size=size, bands=bands)
        calm = [window for window in windows if window.last <= began]
        calm_windows += len(calm)
        alarms += sum(_alerts(window, drift.metric) for window in calm)
        late = [
            window.last - began for window in windows if window.last > began and _alerts(window, drift.metric)
        ]
        delays += late[:1]
    return Backtest(
        metric=drift.metric,
        drift=drift.what,
        fleets=len(streams),
        delays=tuple(sorted(delays)),
        false_alarms=alarms,
        calm_windows=calm_windows,
    )


def _alerts(window: Window, metric: MetricName) -> bool:
    return window.findings[metric].status is Status.ALERT


# -- told -------------------------------------------------------------------------------------------------------

_COLUMNS: Final = "| {:<20} | {:<41} | {:>6} | {:>13} | {:>23} |"


def backtest_lines(found: Sequence[Backtest]) -> Iterator[str]:
    """Yield a table that is Markdown as well."""
    yield _COLUMNS.format("alert", "drift", "found", "after, tasks", "false, of calm windows")
    yield "|---|---|---|---|---|"
    for backtest in found:
        delay = f"{median(backtest.delays):g} ({backtest.delays[-1]})" if backtest.delays else "-"
        yield _COLUMNS.format(
            METRICS[backtest.metric].title,
            backtest.drift,
            f"{len(backtest.delays)}/{backtest.fleets}",
            delay,
            f"{backtest.false_alarms} of {backtest.calm_windows} ({_percent(backtest)})",
        )


def _percent(backtest: Backtest) -> str:
    interval = wilson(backtest.false_alarms, backtest.calm_windows)
    return "-" if interval is None else f"{100 * interval[0]:.0f}-{100 * interval[1]:.0f} %"


def backtest_json(found: Sequence[Backtest]) -> dict[str, JSON]:
    """Return the backtests for machines."""
    return {
        "schema": "statek-sim/backtest@1",
        "alerts": [
            {
                "metric": backtest.metric,
                "drift": backtest.drift,
                "fleets": backtest.fleets,
                "missed": backtest.missed,
                "delays": list(backtest.delays),
                "false_alarms": backtest.false_alarms,
                "calm_windows": backtest.calm_windows,
            }
            for backtest in found
        ],
    }
