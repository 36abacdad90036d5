"""Checkpoints: a commit compared with a bare SQLite commit, and resuming one of 100,000 sessions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from bench.entry import Entry
from statek_sim.agent.checkpoints.seals import Entry as Saved
from statek_sim.agent.checkpoints.sessions import SessionStore, entry_of
from statek_sim.agent.effects import Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.simulation import Simulation
from statek_sim.providers.script import text, tool_call
from statek_sim.providers.scripted import FunctionLLM
from statek_sim.store.codec import canonical, encoded
from statek_sim.store.database import Sqlite
from statek_sim.store.sql import SqlStore

COMMITS: Final = 300
TURNS: Final = 6
SESSIONS: Final = 100_000
FEW: Final = 100
LOADS: Final = 200
MOST: Final = 1.5
"""Goal: how many bare commits one of ours may cost."""
FLAT: Final = 0.5
"""Goal: the fraction of the speed with few sessions that remains with very many."""


def checkpoint_entries(runs: int) -> Iterator[Entry]:
    """Yield the measurements; times are medians of single operations."""
    state = state_of_a_run()
    pairs = [_commits(state) for _ in range(runs)]
    yield Entry(
        name=f"a commit of {len(canonical(encoded(state))) / 1000:.0f} KB",
        peer="bare SQLite commit of its JSON",
        unit="bare commits",
        ours=median(ours / bare for ours, bare in pairs),
        goal=MOST,
    )
    few, many = _resumes(state)
    yield Entry(
        name=f"resuming one of {SESSIONS:,} sessions",
        peer=f"one of {FEW}",
        unit="us",
        ours=many * 1e6,
        theirs=few * 1e6,
        ratio=few / many,
        goal=FLAT,
    )


def state_of_a_run() -> dict[str, Any]:
    """Return the last state that an agent commits after a few turns."""
    snapshots: list[Any] = []
    replies = iter([*(tool_call("look", at=number) for number in range(TURNS)), text("Done.")])

    def look(at: int) -> str:
        """Look."""
        return f"page {at}: " + "words " * 50

    harness = AgentHarness(
        FunctionLLM(lambda request: next(replies)),
        tools=[look],
        parts=Parts(commits=True),
        rescue=False,
        protection=False,
        context=None,
    )
    assert harness.provider is not None
    driver = Simulation(harness.provider, clock=harness.clock, committed=snapshots.append)
    driver.start(harness.begin("Read the book."))
    driver.run(10.0)
    return dict(entry_of(snapshots[-1]).state)


def _commits(state: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds for one of our commits and for a bare one, alternating so the disk is equally busy."""
    with tempfile.TemporaryDirectory() as folder:
        store = SessionStore(SqlStore(Sqlite(Path(folder) / "ours.db"), clock=lambda: 0.0))
        lease = store.claim("s", worker="w", plan="p")
        entry = Saved(point="replied", status="running", at=1.0, state=state)
        bare = Sqlite(Path(folder) / "bare.db")
        bare.execute("CREATE TABLE states (id INTEGER PRIMARY KEY, state TEXT)")
        whole = encoded(state)

        def plain() -> None:
            content = json.dumps(whole)
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("INSERT INTO states (state) VALUES (?)", (content,))
            bare.execute("COMMIT")

        ours, theirs = [], []
        for _ in range(COMMITS):
            ours.append(_seconds(lambda: store.save(lease, entry)))
            theirs.append(_seconds(plain))
        store.close()
        bare.close()
    return median(ours), median(theirs)


def _resumes(state: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds to load a session from among few and from among many."""
    with tempfile.TemporaryDirectory() as folder:
        database = Sqlite(Path(folder) / "many.db")
        # Filling it is not what is measured.
        database.execute("PRAGMA synchronous = OFF")
        store = SessionStore(SqlStore(database, clock=lambda: 0.0))
        entry = Saved(point="replied", status="running", at=1.0, state=state)
        small = Saved(point="replied", status="running", at=1.0, state={"n": 1})
        for number in range(FEW):
            store.save(store.claim(f"session-{number}", worker="w", plan="p"), entry)
        few = _load(store, FEW)
        for number in range(FEW, SESSIONS):
            store.save(store.claim(f"session-{number}", worker="w", plan="p"), small)
        # The same sessions as before, so that only the number of the others differs.
        many = _load(store, FEW)
        store.close()
    return few, many


def _load(store: SessionStore, count: int) -> float:
    return median(_seconds(lambda at=at: store.latest(f"session-{at % count}")) for at in range(LOADS))  # type: ignore[misc]


def _seconds(act: Callable[[], object]) -> float:
    began = perf_counter()
    act()
    return perf_counter() - began
