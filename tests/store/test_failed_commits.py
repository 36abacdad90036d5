"""A commit that fails: the run is over for this process, and nothing that came after it becomes history."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from statek_sim.backends.durable import opened_run
from statek_sim.durability.session import KeptRuntime
from statek_sim.errors import BadStore, Fenced
from statek_sim.providers.script import code
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.tools.declaration import tool
from statek_sim.scenario.schema import Scenario
from statek_sim.store.open import open_store
from statek_sim.store.protocol import Changes, Lease, Store
from statek_sim.testing import Lab, LabSettings
from tests.explore import samples

Error = Callable[[str], Exception]

FULL = "the disk is full"


class Failing:
    """A store whose commit number `fails_at` fails, and that counts how many reach it."""

    def __init__(self, store: Store, fails_at: int, error: Callable[[str], Exception]) -> None:
        self._store = store
        self._fails_at = fails_at
        self._error = error
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        self.commits += 1
        if self.commits == self._fails_at:
            raise self._error(FULL)
        return self._store.commit(lease, changes)


def played(path: Path, scenario: Scenario, *, fails_at: int = 0, error: Error = BadStore) -> int:
    """Run a scenario on a new store whose one commit fails, if any; return how many commits were tried."""
    with closing(open_store(f"sqlite:{path}", clock=lambda: 0.0)) as store:
        broken: Any = Failing(store, fails_at, error)
        if not fails_at:
            opened_run(broken, scenario, "docs", worker="w").finish()
        else:
            with pytest.raises(error, match=f"^{FULL}$"):  # type: ignore[call-overload]  # classes
                opened_run(broken, scenario, "docs", worker="w").finish()
    return broken.commits  # type: ignore[no-any-return]  # a count


def history(path: Path) -> tuple[str, list[str]]:
    """Return how the one run of a store is, and its events."""
    with closing(open_store(f"sqlite:{path}", clock=lambda: 0.0)) as store:
        listed = store.runs()[0]
        return listed.status, [*store.load(listed.run).events]


@pytest.mark.parametrize(("error", "first"), [(BadStore, 1), (Fenced, 2), (RecursionError, 3)])
def test_wherever_a_commit_fails_the_run_raises_and_the_store_can_be_gone_on_with(
    tmp_path: Path, error: Error, first: int
) -> None:
    scenario = samples.scenario(tmp_path, samples.CLAIM)
    commits = played(tmp_path / "whole.db", scenario)
    _, whole = history(tmp_path / "whole.db")
    for number in range(first, commits + 1, 3):
        path = tmp_path / f"{number}.db"
        assert played(path, scenario, fails_at=number, error=error) == number, "nobody committed after it"
        status, events = history(path)
        assert (status, events) == ("running", whole[: len(events)])
        played(path, scenario)
        assert history(path)[0] == "ended"


@pytest.mark.parametrize("catches", ["Exception", "BaseException"])
def test_code_that_catches_everything_does_not_live_on_with_a_failed_commit(
    tmp_path: Path, catches: str
) -> None:
    @tool
    def work(**kwargs: Any) -> None:
        """Do something."""

    clerk = Agent("clerk", "You work.", tools=[work])
    block = f"try:\n    work()\nexcept {catches}:\n    pass\nwork()\nexit('fine')"

    def commits(fails_at: int) -> int:
        lab = Lab(LabSettings())
        lab.llm.script(clerk=[code(block)])
        with closing(open_store(f"sqlite:{tmp_path / f'{fails_at}.db'}", clock=lambda: 0.0)) as store:
            broken: Any = Failing(store, fails_at, BadStore)
            kept = KeptRuntime(lab.runtime, broken, "shop", worker="w", agents=[clerk])
            lab.runtime.create_job(clerk, name="main", message="Go.")
            with pytest.raises(BadStore, match=f"^{FULL}$") if fails_at else nullcontext(), kept.running():
                lab.runtime.run()
            lab.runtime.close()
            kept.close()
        return broken.commits  # type: ignore[no-any-return]  # a count

    total = commits(0)
    assert history(tmp_path / "0.db")[0] == "ended"
    for number in range(1, total + 1):
        assert commits(number) == number
        status, events = history(tmp_path / f"{number}.db")
        assert status == "running"
        assert not any(FULL in event for event in events)


def test_a_run_that_was_taken_over_gives_nothing_back(tmp_path: Path) -> None:
    scenario = samples.scenario(tmp_path, samples.CLAIM)
    with closing(open_store(f"sqlite:{tmp_path / 'runs.db'}", clock=lambda: 0.0)) as store:

        class TakenOver(Failing):
            def commit(self, lease: Lease, changes: Changes) -> Lease:
                if lease.revision == 20:
                    store.claim(lease.run, worker="w")
                return store.commit(lease, changes)

        taken: Any = TakenOver(store, 0, BadStore)
        run = opened_run(taken, scenario, "docs", worker="w")
        with pytest.raises(
            Fenced, match=r"worker 'w' no longer has the lease.*; changes after revision 20 are"
        ):
            run.finish()
        listed = store.runs()[0]
        assert (listed.worker, listed.revision, listed.status) == ("w", 20, "running")
