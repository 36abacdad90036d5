"""Compares our runtime with the real statek package: `python -m bench.run`.

Prints a table and writes `bench.json`, a list of entries (`bench.entry.Entry`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench import side_by_side
from bench.alone import SOLOS
from bench.entry import Entry
from bench.setup import ensure_peer
from bench.sides import BenchError, ours, theirs
from bench.versus import CONTESTS, run_contest

LEAST_RUNS: Final = 5
PLAIN_WIDTH: Final = 140
"""The table width when the output is not a terminal."""
_MARKS: Final = {True: "[green]reached[/]", False: "[red]missed[/]", None: ""}


def main() -> int:
    """Run the chosen benchmarks; return 0, 1 if `--check` finds a missed goal, or 2 if one could not run."""
    arguments = _parse()
    console = Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
    entries, problems = _measure(arguments.only, arguments.runs, Console(stderr=True))
    console.print(_table(entries, arguments.runs))
    records = [entry.record() for entry in entries]
    arguments.output.write_text(json.dumps(records, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for problem in problems:
        print(f"bench: {problem}", file=sys.stderr)
    if problems:
        return 2
    return int(arguments.check and any(entry.reached is False for entry in entries))


def _parse() -> argparse.Namespace:
    known = (*(contest.workload for contest in CONTESTS), side_by_side.NAME, *(solo.name for solo in SOLOS))
    names = list(dict.fromkeys(known))
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=LEAST_RUNS, help="runs per measurement (default: 5)")
    parser.add_argument("--only", action="append", choices=names, help="run only this benchmark (repeatable)")
    parser.add_argument("--output", type=Path, default=Path("bench.json"), help="default: bench.json")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error(f"--runs {arguments.runs}: expected 1 or more")
    arguments.only = arguments.only or names
    return arguments


def _measure(names: list[str], runs: int, progress: Console) -> tuple[list[Entry], list[BenchError]]:
    """Return the measurements, and why the others failed."""
    entries: list[Entry] = []
    problems: list[BenchError] = []
    for title, measure in _plan(names, runs, progress):
        progress.print(title)
        try:
            entries += measure()
        except BenchError as problem:
            problems.append(problem)
    return entries, problems


def _plan(
    names: list[str], runs: int, progress: Console
) -> Iterator[tuple[str, Callable[[], Iterable[Entry]]]]:
    contests = [contest for contest in CONTESTS if contest.workload in names]
    if contests:
        peer = theirs(ensure_peer())
        for contest in contests:
            title = f"{contest.workload} {contest.size:,}: {runs} runs on each side"
            yield title, partial(run_contest, contest, ours(), peer, runs, progress.print)
    if side_by_side.NAME in names:
        title = f"{side_by_side.SCENARIOS.name}: {runs} runs on each side"
        yield title, partial(side_by_side.side_by_side, ensure_peer(), runs, progress.print)
    for solo in SOLOS:
        if solo.name in names:
            yield f"{solo.name}: {runs} runs", partial(solo.entries, ours(), runs)


def _table(entries: list[Entry], runs: int) -> Table:
    table = Table(title=f"medians of {runs} runs", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("measurement", min_width=40)
    table.add_column("peer")
    for column in ("ours", "theirs", "unit", "ratio", "goal"):
        table.add_column(column, justify="left" if column == "unit" else "right")
    table.add_column("")
    for entry in entries:
        table.add_row(
            entry.name,
            entry.peer,
            _number(entry.ours),
            _number(entry.theirs),
            entry.unit,
            "" if entry.ratio is None else f"{_number(entry.ratio)}x",
            _goal(entry),
            _MARKS[entry.reached],
        )
    return table


def _goal(entry: Entry) -> str:
    if entry.goal is None:
        return ""
    return f"<= {entry.goal:g}" if entry.ratio is None else f">= {entry.goal:g}x"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    hundred = 100
    return f"{value:,.0f}" if abs(value) >= hundred else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
