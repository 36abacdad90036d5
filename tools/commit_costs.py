"""Measures how commit costs grow with the stored data: `python -m tools.commit_costs` prints a Markdown table.

A job on the statek engine works turn after turn, prints, and keeps a list; another case has many jobs, most of them
done. An agent on the agent engine calls a tool turn after turn. Times are medians of CPU time, bytes are bytes written;
the first row is the start of a run, the others are later stretches of the same run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final

from statek_sim.agent.checkpoints.sessions import Keeper, SessionStore
from statek_sim.agent.effects import Parts, Snapshot
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.simulation import Simulation
from statek_sim.backends.durable import DurableRun, about, run_name
from statek_sim.providers.script import text, tool_call
from statek_sim.providers.scripted import FunctionLLM
from statek_sim.scenario.load import load_or_fail
from statek_sim.store.database import Sqlite
from statek_sim.store.open import open_store
from statek_sim.store.protocol import Changes, Lease, Store
from statek_sim.store.sql import SqlStore

TURNS: Final = 300
JOBS: Final = 60
STRETCH: Final = 0.1
"""The part of a run that a table row covers."""
ROWS: Final = (0.0, 0.2, 0.45, 0.9)
"""Where the stretches start."""

_GROWS: Final = """
suite: costs
scenarios:
  - id: grows
    title: A job prints and keeps, turn after turn.
    limits: {max_turns: 10000, max_token_usage: 100000000}
    agents: {clerk: {prompt: You work.}}
    jobs: {main: {message: Go., locals: {notes: []}}}
    script:
      clerk:
        - {code: "notes.append('a line of some length that is kept')\\nprint('line', len(notes))", repeat: TURNS}
        - {code: "exit('ok')"}
"""
_MANY: Final = """
suite: costs
scenarios:
  - id: many
    title: Jobs come and go, one after the other.
    agents: {clerk: {prompt: You work.}}
    jobs:
JOBS
    script:
      clerk:
        - {code: "print('one line')\\nexit('ok')", repeat: forever}
"""

Costs = list[tuple[float, int]]
"""The seconds of CPU time and the bytes written for each commit."""


class Weighing:
    """A store that measures what each commit writes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.written: list[int] = []

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Commit and record the cost."""
        self.written.append(sum(map(len, (*changes.rows.values(), *changes.events))))
        return self._store.commit(lease, changes)

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the store."""
        return getattr(self._store, name)


def of_a_run(scenario_text: str, folder: Path) -> Costs:
    """Return the commit costs for one scenario."""
    path = folder / "costs.yaml"
    path.write_text(scenario_text)
    (scenario,) = load_or_fail([path])
    profile, costs = scenario.profiles[-1], []
    with closing(open_store(f"sqlite:{folder / 'costs.db'}", clock=lambda: 0.0)) as opened:
        store = Weighing(opened)
        description = about(scenario, profile, preset=None, seed=None)
        lease = store.claim(run_name(scenario, profile), worker="costs", about=description)
        run = DurableRun(store, lease, scenario, profile)
        commit = run._session._commit

        def measured(status: Any) -> None:
            began, before = process_time(), len(store.written)
            commit(status)
            if len(store.written) > before:
                costs.append((process_time() - began, store.written[-1]))

        run._session._commit = measured  # type: ignore[method-assign]  # what is measured
        run.finish()
    return costs


def of_an_agent(folder: Path) -> Costs:
    """Return the commit costs for an agent's run."""
    replies = iter([*(tool_call("look", at=number) for number in range(TURNS)), text("Done.")])
    costs: Costs = []

    def look(at: int) -> str:
        """Look."""
        return f"page {at}: " + "words " * 10

    harness = AgentHarness(
        FunctionLLM(lambda request: next(replies)),
        tools=[look],
        parts=Parts(commits=True),
        max_iterations=TURNS + 1,
        rescue=False,
        protection=False,
        context=None,
    )
    assert harness.provider is not None, "it was made with one"
    database = Sqlite(folder / "agent.db")
    keeper = Keeper(SessionStore(SqlStore(database, clock=lambda: 0.0)), "costs", worker="w", plan="p")

    def committed(snapshot: Snapshot) -> None:
        began = process_time()
        keeper.committed(snapshot)
        costs.append((process_time() - began, 0))

    driver = Simulation(harness.provider, clock=harness.clock, committed=committed)
    driver.start(harness.begin("Read the book."))
    driver.run(1e9)
    return costs


def rows(name: str, costs: Costs) -> Iterator[str]:
    """Yield the table rows for one kind of run."""
    for begin in ROWS:
        first = int(len(costs) * begin)
        stretch = costs[first : first + max(1, int(len(costs) * STRETCH))]
        seconds, written = (median(column) for column in zip(*stretch, strict=True))
        size = f"{written / 1000:.1f} KB" if written else ""
        yield f"| {name} | {first:,} | {seconds * 1000:.2f} ms | {size} |"


def main() -> int:
    """Print the table."""
    many = "\n".join(f"      job-{number}: {{message: Go., at: {number}}}" for number in range(JOBS))
    kinds: Mapping[str, Callable[[Path], Costs]] = {
        f"one job, {TURNS} turns": lambda folder: of_a_run(_GROWS.replace("TURNS", str(TURNS)), folder),
        f"{JOBS} jobs": lambda folder: of_a_run(_MANY.replace("JOBS", many), folder),
        f"an agent, {TURNS} turns": of_an_agent,
    }
    print("| run | commits before | processor time of one | written |\n|---|---:|---:|---:|")
    for name, costs in kinds.items():
        with tempfile.TemporaryDirectory(prefix="statek-commits-") as folder:
            for line in rows(name, costs(Path(folder))):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
