"""A loss of power while SQLite writes: whatever of the next commit reached the disk, acknowledged ones stay.

Between two acknowledged commits SQLite only appends to its write-ahead log. So the disk may hold any part of what was
appended since the last fsync: cut anywhere, with holes, or overwritten with something else.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from statek_sim.backends.durable import about, opened_run, resumed_run, run_name
from statek_sim.errors import BadStore
from statek_sim.explore.variation import undisturbed
from statek_sim.scenario.schema import Scenario
from statek_sim.store.open import open_store
from statek_sim.store.protocol import Changes, Lease, Store
from tests.explore import samples

PAGE = 512
CUTS = 4


class Copying:
    """A store that copies its files after every commit that it acknowledges."""

    def __init__(self, store: Store, path: Path, folder: Path) -> None:
        self._store = store
        self._path = path
        self._folder = folder
        self.address = store.address
        self.copies: list[Path] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        lease = self._store.commit(lease, changes)
        copy = self._folder / f"{lease.revision}"
        copy.mkdir()
        for file in self._path.parent.glob(f"{self._path.name}*"):
            shutil.copy(file, copy)
        self.copies.append(copy)
        return lease


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return samples.scenario(tmp_path, samples.CLAIM)


def recorded(scenario: Scenario, folder: Path) -> list[Path]:
    """Return the files of a run as they are after each of its commits."""
    path = folder / "live" / "runs.db"
    path.parent.mkdir()
    store = open_store(f"sqlite:{path}", clock=lambda: 0.0)
    copying = Copying(store, path, folder)
    opened_run(copying, scenario, "docs", worker="w").finish()  # type: ignore[arg-type]  # what it lacks, it passes on
    store.close()
    return copying.copies


def torn(before: bytes, after: bytes, chance: random.Random) -> Iterator[bytes]:
    """Yield what a disk may hold when the power fails between two states of a log."""
    assert after.startswith(before), "SQLite appended"
    added = after[len(before) :]
    yield after
    for _ in range(CUTS):
        cut = chance.randrange(len(added) + 1)
        pages = [added[at : at + PAGE] for at in range(0, len(added), PAGE)]
        holes = b"".join(page if chance.random() < 0.5 else bytes(len(page)) for page in pages)
        yield before + added[:cut]
        yield before + holes
        yield before + added[:cut] + chance.randbytes(len(added) - cut)


def test_no_acknowledged_commit_is_lost_or_torn(tmp_path: Path, scenario: Scenario) -> None:
    copies = recorded(scenario, tmp_path)
    chance, tried, came = random.Random(0), 0, set[str]()
    for earlier, later in pairwise(copies[4:]):
        before, after = ((copy / "runs.db-wal").read_bytes() for copy in (earlier, later))
        for log in torn(before, after, chance):
            left = tmp_path / "left"
            shutil.rmtree(left, ignore_errors=True)
            left.mkdir()
            shutil.copy(earlier / "runs.db", left)
            (left / "runs.db-wal").write_bytes(log)
            store = open_store(f"sqlite:{left / 'runs.db'}", clock=lambda: 1000.0)
            found = store.load(run_name(scenario, "docs"))
            assert found.revision in (int(earlier.name), int(later.name))
            came.add("later" if found.revision == int(later.name) else "earlier")
            tried += 1
            if tried % 97 == 0:
                lease = store.claim(found.run, worker="next")
                again = resumed_run(store, lease).finish()
                assert len(again.events) > len(found.events)
                assert store.load(found.run).status == "ended"
            store.close()
    assert tried > 200
    assert came == {"earlier", "later"}


def test_a_log_that_nobody_waited_for_would_lose_commits(tmp_path: Path, scenario: Scenario) -> None:
    """Show that the rig finds something: what was acknowledged and then taken away is missed."""
    copies = recorded(scenario, tmp_path)
    left = tmp_path / "left"
    left.mkdir()
    shutil.copy(copies[-1] / "runs.db", left)
    log = (copies[-1] / "runs.db-wal").read_bytes()
    (left / "runs.db-wal").write_bytes(log[: len(log) // 2])
    store = open_store(f"sqlite:{left / 'runs.db'}", clock=lambda: 0.0)
    assert store.load(run_name(scenario, "docs")).revision < int(copies[-1].name)
    store.close()


def test_a_run_that_died_before_its_first_commit_begins_anew(tmp_path: Path, scenario: Scenario) -> None:
    store = open_store(f"sqlite:{tmp_path / 'runs.db'}", clock=lambda: 0.0)
    told = about(scenario, "docs", preset=None, seed=None)
    store.release(store.claim(run_name(scenario, "docs"), worker="w", about=told))
    lease = store.claim_next(worker="next")
    assert lease is not None
    assert resumed_run(store, lease).finish().digest == undisturbed(scenario, "docs").digest
    store.close()


def test_a_run_of_another_scenario_is_not_gone_on_with(tmp_path: Path, scenario: Scenario) -> None:
    store = open_store(f"sqlite:{tmp_path / 'runs.db'}", clock=lambda: 0.0)
    opened_run(store, scenario, "docs", worker="w").finish()
    other = samples.scenario(tmp_path, samples.CLAIM.replace("exit('ok')", "exit('other')"))
    with pytest.raises(
        BadStore, match="was started with a different scenario, preset or seed; use the original values, or a"
    ):
        opened_run(store, other, "docs", worker="w")
    store.close()


def test_a_run_that_is_refused_before_it_begins_is_over(tmp_path: Path) -> None:
    wrong = samples.CLAIM.replace(
        "prompt: You process invoices.", "prompt: x, warmup: 'look( #STATEK: as tool'"
    )
    scenario = samples.scenario(tmp_path, wrong)
    store = open_store(f"sqlite:{tmp_path / 'runs.db'}", clock=lambda: 0.0)
    record = opened_run(store, scenario, "docs", worker="w").finish()
    assert record.error is not None
    assert record.error.type == "SyntaxError"
    assert store.runs()[0].status == "ended"
    store.close()
