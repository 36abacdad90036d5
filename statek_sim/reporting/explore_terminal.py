"""An exploration in the terminal: what was proven of each scenario, then each failure with its command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from statek_sim.explore.result import Exploration, Explored, Failure
from statek_sim.explore.workers import Replayed
from statek_sim.reporting.numbers import plural

_NOUNS: Final = {
    "crashes": "crash points",
    "orders": "orders",
    "limits": "limits",
    "faults": "request faults",
    "moves": "moved events",
    "commits": "lost commits",
}


class ExploreProgress:
    """Shows how many scenarios are done, how many runs that took and how many failures there are; on terminals only."""

    def __init__(self, console: Console, total: int) -> None:
        self._runs = self._failures = 0
        self._progress: Progress | None = None
        self._task = TaskID(0)
        if console.is_terminal and not console.is_dumb_terminal and total:
            self._progress = Progress(
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.description}", markup=False),
                console=console,
                transient=True,
            )
            self._progress.start()
            self._task = self._progress.add_task("", total=total)

    def done(self, explored: Explored) -> None:
        """Count one scenario."""
        self._runs += explored.runs
        self._failures += len(explored.failures)
        if self._progress is not None:
            line = f"{self._runs:,} runs  {plural(self._failures, 'failure')}  {explored.id}"
            self._progress.update(self._task, advance=1, description=line)

    def close(self) -> None:
        """Take it away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def explore_lines(exploration: Exploration, *, quiet: bool = False) -> Iterator[Text]:
    """Yield a line per scenario, the failures, the tools' certificates and the verdict."""
    for explored in exploration.scenarios:
        if quiet and not (exploration.nothing or explored.killed):
            continue
        yield Text(
            scenario_line(explored), "red" if explored.failed else "yellow" if explored.problem else ""
        )
    for explored in exploration.scenarios:
        yield from failure_lines(explored)
    tools = () if quiet else [*tool_lines(exploration.scenarios)]
    if tools:
        yield Text()
        yield Text("Tools of your own, when their worker dies", "bold")
        yield from map(Text, tools)
    yield Text()
    if exploration.stopped:
        yield Text("stopped: what follows is what was covered so far", "yellow")
    bad = exploration.failed or exploration.nothing
    yield Text(verdict_words(exploration), "bold red" if bad else "bold green")


def scenario_line(explored: Explored) -> str:
    """Return what was proven of a scenario, in one line."""
    name = f"{explored.suite}/{explored.id}[{explored.profile}]"
    if explored.problem is not None:
        return f"{name}: not explored: {explored.problem}"
    return f"{name}: {proven_words(explored)}"


def proven_words(explored: Explored) -> str:
    """Return what the result stands for: `22 of 22 crash points, 4 of 4 orders; beyond that ...`."""
    proven = ", ".join(f"{count} {_NOUNS[kind]}" for kind, count in explored.proven.items() if count.of)
    beyond = explored.beyond
    more = []
    if beyond.pairs.of:
        more.append(f"{beyond.pairs} pairs")
    if beyond.triples:
        more.append(f"{beyond.triples} drawn triples")
    if beyond.depth is not None and beyond.probability is not None:
        more.append(f"orders of depth {beyond.depth} with {100 * beyond.probability:.0f} %")
    if explored.unknown:
        more.append(f"{plural(explored.unknown, 'run')} left the script")
    return "; ".join([proven or "nothing to vary", *(["beyond that " + ", ".join(more)] if more else [])])


def failure_lines(explored: Explored) -> Iterator[Text]:
    """Yield what fails in a scenario, with where it departs."""
    for failure in explored.failures:
        yield Text()
        yield Text(
            f"FAILED {explored.suite}/{explored.id}[{explored.profile}] {failure.invariant}", "bold red"
        )
        yield Text(f"  {failure.message}")
        yield from (Text(f"  {line}") for line in failure_words(failure))
    for name, reached in explored.reached.items():
        if not reached:
            yield Text(
                f"FAILED {explored.suite}/{explored.id}[{explored.profile}] {name}: no run reached it",
                "bold red",
            )


def failure_words(failure: Failure) -> Iterator[str]:
    """Yield where it departs, how often it fails, whose it is, and how to see it again."""
    yield from map(str, failure.deviations)
    if not failure.deviations:
        yield "undisturbed"
    if failure.times > 1:
        yield f"so do {plural(failure.times - 1, 'further run')}"
    if failure.why:
        yield f"whose: {failure.whose or 'not known'}: {failure.why}"
    if failure.file is not None:
        yield f"statek-sim explore --replay {failure.file}"


PHASES: Final = ("before", "during", "after", "run twice", "two owners")
"""When what becomes of a tool's effect is told."""


def tool_lines(scenarios: Iterable[Explored]) -> Iterator[str]:
    """Yield the certificate of each of the user's own tools: the worst that was seen in any scenario."""
    order = (None, "safe", "at least once", "leaks")
    worst: dict[str, list[str | None]] = {}
    for explored in scenarios:
        for tool in explored.tools:
            if not tool.own:
                continue
            known = worst.setdefault(tool.tool, [None] * len(PHASES))
            for place, verdict in enumerate((tool.before, tool.during, tool.after, tool.twice, tool.owners)):
                known[place] = max(known[place], verdict, key=order.index)
    for name, verdicts in sorted(worst.items()):
        phases = zip(PHASES, verdicts, strict=True)
        yield f"  {name}: " + ", ".join(f"{phase} {verdict or 'not seen'}" for phase, verdict in phases)


def verdict_words(exploration: Exploration) -> str:
    """Return what comes of it all."""
    failing = Counter(
        failure.invariant for explored in exploration.scenarios for failure in explored.failures
    )
    words = f"{plural(len(exploration.scenarios), 'scenario')}, {plural(exploration.runs, 'run')}"
    if exploration.nothing:
        return f"{words}: nothing was explored"
    if exploration.skipped:
        words += f", {exploration.skipped} not explored"
    if not exploration.failed:
        return f"{words}: nothing fails"
    unreached = sum(
        not reached for explored in exploration.scenarios for reached in explored.reached.values()
    )
    parts = [f"{name} in {times}" for name, times in sorted(failing.items())]
    killed = sum(explored.killed for explored in exploration.scenarios)
    parts += [f"{unreached} never reached"] * bool(unreached) + [f"{killed} killed"] * bool(killed)
    return f"{words}: {', '.join(parts)}"


def replay_line(replayed: Replayed) -> str:
    """Return what came of a found case: FIXED or FAILED."""
    name = f"{replayed.scenario.id}[{replayed.profile}] {replayed.scenario.violates}"
    if not replayed.fixed:
        return f"FAILED {name}: {replayed.message}"
    absent = f" (no occasion for: {'; '.join(replayed.absent)})" if replayed.absent else ""
    return f"FIXED {name}{absent}"
