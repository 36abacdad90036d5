"""Leases of workers that are slow: kept by a sign of life, and lost by a worker that gives none."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from statek_sim.errors import BadStore, Fenced, Held
from statek_sim.providers.script import code
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.tools.declaration import tool
from statek_sim.store.open import open_store
from statek_sim.store.protocol import Changes, Lease, Store
from statek_sim.store.worker import Heartbeat, real_seconds
from statek_sim.testing import Lab, LabSettings

LEASE = 1.0
"""Real seconds of a lease."""

SLOW = 1.5
"""Real seconds that the slow tool takes, which is longer than a lease."""


def serve(address: str, marks: Path) -> str:
    """Run one job, whose tool takes until there is a file `enough`; return the digest of its trace."""

    @tool
    def survey(**kwargs: Any) -> str:
        """Take long."""
        (marks / "began").touch()
        waited_for(marks / "enough")
        with (marks / "surveys").open("a") as surveys:
            surveys.write("x")
        return "done"

    lab = Lab(LabSettings())
    agent = Agent("clerk", "You survey.", tools=[survey])
    lab.llm.script(clerk=[code("survey()"), code("exit('ok')")])
    try:
        kept = lab.runtime.keep_in(address, agents=[agent], lease=LEASE)
        if not kept.resumed:
            lab.runtime.create_job(agent, name="main")
        lab.runtime.run()
        assert lab.runtime.job("main").exit == "ok"
        return lab.runtime.trace.digest()
    finally:
        lab.runtime.close()


def claimed_from(stopped: int, store: Store) -> Lease:
    """Return the lease of a stopped process's run. If it was stopped while it wrote, it goes on for a moment first."""
    for _ in range(5):
        until = real_seconds() + 4
        while real_seconds() < until:
            lease = store.claim_next(worker="another")
            if lease is not None:
                return lease
            time.sleep(0.05)
        os.kill(stopped, signal.SIGCONT)
        time.sleep(0.05)
        os.kill(stopped, signal.SIGSTOP)
    raise AssertionError("the run stayed with its worker")


@contextmanager
def served(address: str, marks: Path) -> Iterator[int]:
    """Serve in a process of its own and yield its number; what came of it is in the file `outcome` afterwards."""
    child = os.fork()
    if child == 0:
        outcome = "it ended"
        try:
            outcome = serve(address, marks)
        except BadStore as error:
            outcome = f"{type(error).__name__}: {error}"
        finally:
            (marks / "outcome").write_text(outcome)
            os._exit(0)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGCONT)
        (marks / "enough").touch()
        os.waitpid(child, 0)


def waited_for(path: Path) -> None:
    until = real_seconds() + 20
    while not path.exists():
        assert real_seconds() < until, f"{path.name} did not come"
        time.sleep(0.01)


def other_worker(address: str) -> closing[Store]:
    return closing(open_store(address, clock=real_seconds, lease=LEASE, must_exist=True))


def test_a_slow_worker_keeps_its_run_and_its_trace_is_that_of_a_quick_one(
    tmp_path: Path, address: str
) -> None:
    with served(address, tmp_path):
        waited_for(tmp_path / "began")
        until = real_seconds() + SLOW
        with other_worker(address) as store:
            while real_seconds() < until:
                assert store.claim_next(worker="another") is None
                with pytest.raises(Held, match="held by"):
                    store.claim("main", worker="another")
                time.sleep(LEASE / 10)
    assert (tmp_path / "surveys").read_text() == "x"
    assert (tmp_path / "outcome").read_text() == serve(f"sqlite:{tmp_path / 'quick.db'}", tmp_path)


def test_a_worker_that_gave_no_sign_of_life_is_fenced_and_the_run_is_ended_by_another(
    tmp_path: Path, address: str
) -> None:
    with served(address, tmp_path) as child:
        waited_for(tmp_path / "began")
        os.kill(child, signal.SIGSTOP)
        with other_worker(address) as store:
            assert store.claim_next(worker="another") is None
            lease = claimed_from(child, store)
            store.release(lease)
        # It wakes up in the middle of its tool, and finds its run gone.
    outcome = (tmp_path / "outcome").read_text()
    assert outcome.startswith("Fenced: ")
    assert "no longer has the lease" in outcome
    assert "it was not renewed for 1 s" in outcome
    with other_worker(address) as store:
        assert store.load("main").revision == lease.revision
    # An effect outside of the store cannot be taken back, and is there once more.
    serve(address, tmp_path)
    assert (tmp_path / "surveys").read_text() == "xx"


class Beaten:
    """A store that says what becomes of each renewal."""

    lease_seconds = 0.003

    def __init__(self, *answers: BadStore | None) -> None:
        self.answers = [*answers]

    def renew(self, lease: Lease) -> None:
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer


def beaten(store: Any, until: Callable[[], bool]) -> Heartbeat:
    heartbeat = Heartbeat(store, Lease(run="main", worker="me", fence=1, revision=0))
    with heartbeat.beating():
        deadline = real_seconds() + 20
        while not until() and real_seconds() < deadline:
            time.sleep(0.001)
    return heartbeat


def test_a_renewal_that_fails_is_tried_again_and_one_that_comes_too_late_is_the_last() -> None:
    over = Fenced("somebody has it")
    store = Beaten(BadStore("busy"), None, BadStore("busy"), over, BadStore("never asked"))
    heartbeat = beaten(store, lambda: len(store.answers) == 1)
    assert heartbeat.taken is over
    assert [str(left) for left in store.answers] == ["never asked"]
    healthy = Beaten(BadStore("busy"), None)
    assert beaten(healthy, lambda: not healthy.answers).taken is None


def test_a_renewal_changes_the_lease_alone(tmp_path: Path) -> None:
    now = [100.0]
    with closing(open_store(f"sqlite:{tmp_path / 'runs.db'}", clock=lambda: now[0], lease=10.0)) as store:
        lease = store.claim("main", worker="me", about={})
        lease = store.commit(lease, Changes(rows={"root": "{}"}))
        now[0] = 108.0
        store.renew(lease)
        now[0] = 115.0
        assert [(one.worker, one.left, one.revision) for one in store.runs()] == [("me", 3.0, 1)]
        # The lease is still the one to commit with.
        lease = store.commit(lease, Changes(rows={"root": "[]"}))
        now[0] = 126.0
        taken = store.claim("main", worker="another")
        with pytest.raises(Fenced, match="'me' no longer has the lease: it was not renewed for 10 s"):
            store.renew(lease)
        store.release(taken)
        with pytest.raises(Fenced, match=r"'me'.*; changes after revision 2 are lost"):
            store.commit(lease, Changes(rows={"root": "{}"}))
