"""Renders an exploration for a terminal, as JSON (`statek-sim/exploration@1`) and as GitHub-flavoured Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from statek_sim.explore.result import Exploration, Explored, Failure
from statek_sim.explore.workers import Replayed
from statek_sim.reporting.table import Code, Table, escaped
from statek_sim.reporting.text_format import plural
from statek_sim.values import JSON, record

_NOUNS: Final = {
    "crashes": "crash points",
    "orders": "orders",
    "limits": "limits",
    "faults": "request faults",
    "moves": "moved events",
    "commits": "lost commits",
}


def explore_lines(exploration: Exploration, *, quiet: bool = False) -> Iterator[Text]:
    """Yield the report for a terminal: a line per scenario, failures, tool verdicts, and the overall verdict."""
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
        yield Text("Your tools when their worker dies", "bold")
        yield from map(Text, tools)
    yield Text()
    if exploration.stopped:
        yield Text("stopped early; the verdict covers the runs so far", "yellow")
    bad = exploration.failed or exploration.nothing
    yield Text(verdict_words(exploration), "bold red" if bad else "bold green")


def scenario_line(explored: Explored) -> str:
    """Return a line that describes what was explored in a scenario, or why it was not explored."""
    name = f"{explored.suite}/{explored.id}[{explored.profile}]"
    if explored.problem is not None:
        return f"{name}: not explored: {explored.problem}"
    return f"{name}: {proven_words(explored)}"


def proven_words(explored: Explored) -> str:
    """Return what was explored in a scenario, such as `22 of 22 crash points, 4 of 4 orders; beyond that ...`."""
    proven = ", ".join(f"{count} {_NOUNS[kind]}" for kind, count in explored.proven.items() if count.of)
    beyond = explored.beyond
    more = []
    if beyond.pairs.of:
        more.append(f"{beyond.pairs} pairs")
    if beyond.depth is not None and beyond.probability is not None:
        more.append(f"orders of depth {beyond.depth} with {100 * beyond.probability:.0f} %")
    if explored.unknown:
        more.append(f"{plural(explored.unknown, 'run')} left the script")
    return "; ".join(
        [proven or "no deviations to try", *(["beyond that " + ", ".join(more)] if more else [])]
    )


def failure_lines(explored: Explored) -> Iterator[Text]:
    """Yield a scenario's failures with their deviations."""
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
    """Yield the deviations that caused a failure, the number of other failing runs, and the replay command."""
    yield from map(str, failure.deviations)
    if not failure.deviations:
        yield "without deviations"
    if failure.times > 1:
        yield f"also fails in {plural(failure.times - 1, 'other run')}"
    if failure.file is not None:
        yield f"statek-sim explore --replay {failure.file}"


PHASES: Final = ("before", "during", "after", "run twice", "two owners")
"""The disturbances by which a tool is judged, in report order."""


def tool_lines(scenarios: Iterable[Explored]) -> Iterator[str]:
    """Yield a line for each of the user's own tools, with its worst verdicts across all scenarios."""
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
        yield f"  {name}: " + ", ".join(f"{phase}: {verdict or 'not tested'}" for phase, verdict in phases)


def verdict_words(exploration: Exploration) -> str:
    """Return the overall verdict in one line."""
    failing = Counter(
        failure.invariant for explored in exploration.scenarios for failure in explored.failures
    )
    words = f"{plural(len(exploration.scenarios), 'scenario')}, {plural(exploration.runs, 'run')}"
    if exploration.nothing:
        return f"{words}: nothing was explored"
    if exploration.skipped:
        words += f", {exploration.skipped} not explored"
    if not exploration.failed:
        return f"{words}: no failures"
    unreached = sum(
        not reached for explored in exploration.scenarios for reached in explored.reached.values()
    )
    parts = [f"{name} in {times}" for name, times in sorted(failing.items())]
    killed = sum(explored.killed for explored in exploration.scenarios)
    parts += [f"{unreached} never reached"] * bool(unreached) + [f"{killed} killed"] * bool(killed)
    return f"{words}: {', '.join(parts)}"


def replay_line(replayed: Replayed) -> str:
    """Return a line about a replayed failure that starts with FIXED or FAILED."""
    name = f"{replayed.scenario.id}[{replayed.profile}] {replayed.scenario.violates}"
    if not replayed.fixed:
        return f"FAILED {name}: {replayed.message}"
    absent = f" (no occasion for: {'; '.join(replayed.absent)})" if replayed.absent else ""
    return f"FIXED {name}{absent}"


SCHEMA: Final = "statek-sim/exploration@1"
VERSION: Final = 1


def exploration_json(exploration: Exploration, seconds: float) -> dict[str, JSON]:
    """Return the exploration as JSON that follows `exploration_schema.json`; `seconds` is the real duration."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "scenarios": [_scenario(explored) for explored in exploration.scenarios],
        "runs": exploration.runs,
        "seconds": round(seconds, 3),
        "stopped": exploration.stopped,
    }


def _scenario(explored: Explored) -> JSON:
    beyond = explored.beyond
    return {
        **record(explored, "id", "suite", "profile", "points", "explored"),
        "proven": {kind: [count.tried, count.of] for kind, count in explored.proven.items()},
        "beyond": {
            "pairs": [beyond.pairs.tried, beyond.pairs.of],
            **record(beyond, "depth", "probability"),
        },
        "failures": [_failure(failure) for failure in explored.failures],
        **record(explored, "reached", "unknown", "repeats", "runs", "tools", "problem"),
        "crash": record(explored.crash, "tokens", "where"),
        "map": [[cell.event, cell.silent, cell.what, cell.job, cell.came] for cell in explored.cells],
    }


def _failure(failure: Failure) -> JSON:
    deviations: list[JSON] = [
        deviation.model_dump(mode="json", exclude_unset=True) for deviation in failure.deviations
    ]
    return {**record(failure, "invariant", "message", "times", "file"), "deviations": deviations}


MARKS = {"same": "=", "differs": "~", "unknown": "?"}
"""The crash map's letter for each outcome; a violated invariant is `X`."""


def exploration_markdown(exploration: Exploration) -> str:
    """Return the report as Markdown; equal explorations give equal text."""
    return "\n\n".join(_blocks(exploration)) + "\n"


def _blocks(exploration: Exploration) -> Iterator[str]:
    yield "# Exploration"
    yield f"{verdict_words(exploration)}."
    if exploration.stopped:
        yield "The exploration was stopped early; this report covers the runs so far."
    played = [explored for explored in exploration.scenarios if explored.problem is None]
    if played:
        head = ("scenario", "proven", "failures", "crash adds", "crash map")
        yield Table(head=head, rows=[*map(_row, played)], left=head).markdown()
        yield (
            "The crash map has a letter per distinct crash point: `=` same result, `~` different result, `?` leaves "
            "the script, `X` violates an invariant."
        )
    for explored in exploration.scenarios:
        yield from _failures(explored)
    tools = [f"- {escaped(line.strip())}" for line in tool_lines(exploration.scenarios)]
    if tools:
        yield "## Your tools when their worker dies"
        yield "\n".join(tools)
    left = [explored for explored in exploration.scenarios if explored.problem is not None]
    if left:
        yield "## Not explored"
        yield "\n".join(f"- {explored.id}: {escaped(explored.problem or '')}" for explored in left)


def _row(explored: Explored) -> tuple[str, ...]:
    failing = ", ".join(failure.invariant for failure in explored.failures) or "none"
    letters = "".join(MARKS.get(cell.came, "X") for cell in explored.cells)
    return (
        f"{explored.id} {explored.profile}",
        proven_words(explored),
        failing,
        f"{explored.crash.tokens:,} tokens",
        Code(letters) if letters else "",
    )


def _failures(explored: Explored) -> Iterator[str]:
    for failure in explored.failures:
        yield f"## {explored.id} {explored.profile}: {failure.invariant}"
        yield escaped(failure.message)
        yield "\n".join(f"- {escaped(line)}" for line in failure_words(failure))
