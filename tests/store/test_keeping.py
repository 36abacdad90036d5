"""An application's own runtime in a store: killed in the middle, and gone on with by the same code."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from statek_sim.cli import main
from statek_sim.durability.session import KeptRuntime
from statek_sim.errors import BadInput, BadStore, Damaged
from statek_sim.providers.script import code
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.stored.storable_types import stored
from statek_sim.runtime.tools.declaration import tool
from statek_sim.testing import Lab, LabSettings
from statek_sim.trace import Event, StoreRemark
from tests.says import line_with
from tests.store.dying import in_a_process

SENT: list[str] = []


@stored
class Order:
    """Something of an application's."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.notes: list[str] = []


@tool
def note(order: Order, text: str, **kwargs: Any) -> int:
    """Write a note on an order."""
    order.notes.append(text)
    return len(order.notes)


def clerk() -> Agent:
    return Agent("clerk", "You write notes.", tools=[note])


SCRIPT = [
    code("mine = note(order, 'seen')\nshared.append('first')"),
    code("note(order, 'packed')\nshared.append('second')"),
    code("exit(shared)"),
]


def shop(path: Path, *, dies_at: int | None = None, agent: Agent | None = None) -> tuple[Lab, KeptRuntime]:
    """Open the shop as every process of it does, and run it; it dies at the event `dies_at`."""
    lab = Lab(LabSettings())
    agent = agent or clerk()
    lab.llm.script(clerk=SCRIPT)
    kept = lab.runtime.keep_in(f"sqlite:{path}", agents=[agent], kept={"orders": [Order(7)], "shared": []})
    if not kept.resumed:
        for name in ("one", "two"):
            order = kept.kept["orders"][0]  # type: ignore[index]  # the list above
            lab.runtime.create_job(
                agent, name=name, shared_vars={"order": order, "shared": kept.kept["shared"]}
            )
    if dies_at is not None:
        add = lab.runtime.trace.add

        def dying(event: Event) -> None:
            add(event)
            if len(lab.runtime.trace.events) >= dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

        lab.runtime.trace.add = dying
    # Two jobs share a script of three replies: twice over is what both need.
    lab.runtime.run()
    return lab, kept


def killed_shop(path: Path, dies_at: int) -> None:
    status = in_a_process(lambda: (shop(path, dies_at=dies_at), None)[1])
    assert os.WTERMSIG(status) == signal.SIGKILL


@pytest.fixture(autouse=True)
def both_jobs_have_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.store.test_keeping.SCRIPT", [reply for reply in SCRIPT for _ in range(2)])


def test_objects_that_jobs_share_are_shared_after_a_kill(tmp_path: Path) -> None:
    killed_shop(tmp_path / "shop.db", dies_at=24)
    lab, kept = shop(tmp_path / "shop.db")
    one, two = (lab.runtime.job(name) for name in ("one", "two"))
    assert one.locals["order"] is two.locals["order"]
    assert one.locals["order"] is kept.kept["orders"][0]  # type: ignore[index]  # a list
    assert one.locals["shared"] is two.locals["shared"] is kept.kept["shared"]
    assert [job.status for job in (one, two)] == [JobStatus.DONE, JobStatus.DONE]
    assert sorted(set(kept.kept["shared"])) == ["first", "second"]  # type: ignore[call-overload]  # texts
    lab.runtime.close()


@pytest.mark.parametrize("dies_at", [5, 9, 14, 31])
def test_every_job_ends_and_every_reply_is_asked_for_once(tmp_path: Path, dies_at: int) -> None:
    killed_shop(tmp_path / "shop.db", dies_at)
    lab, _ = shop(tmp_path / "shop.db")
    assert [job.stop for job in lab.runtime.jobs] == ["exit", "exit"]
    lab.llm.check_finished()
    lab.runtime.close()


def test_a_finished_shop_is_found_as_it_was_left(tmp_path: Path) -> None:
    lab, _ = shop(tmp_path / "shop.db")
    digest = lab.runtime.trace.digest()
    lab.runtime.close()
    again, kept = shop(tmp_path / "shop.db")
    assert kept.resumed
    assert again.runtime.trace.digest() == digest
    again.runtime.job("one").push_user_message("More?")
    assert again.runtime.job("one").status is JobStatus.STARTED
    again.runtime.close()


def test_what_cannot_be_stored_is_dropped_with_a_remark_while_the_run_goes_on(tmp_path: Path) -> None:
    lab = Lab(LabSettings())
    agent = Agent("clerk", "You try things.")
    lab.llm.script(
        clerk=[
            code("import itertools\nrows = [1]\nendless = itertools.count()"),
            code("rows.append(iter([]))"),
            code("exit('ok')"),
        ]
    )
    lab.runtime.keep_in(f"sqlite:{tmp_path / 'x.db'}", agents=[agent])
    job = lab.runtime.create_job(agent, name="main")
    lab.runtime.run()
    remarks = [
        (event.name, event.change, event.reason)
        for event in job.trace.of_type(StoreRemark)
        if event.release is None
    ]
    assert remarks == [
        ("endless", "lost", "count cannot be stored"),
        ("rows", "lost", "list: LazyIterator cannot be stored"),
    ]
    assert "endless" not in job.locals
    assert "rows" not in job.locals
    lab.runtime.close()


def test_other_agents_than_the_run_began_with_are_named(tmp_path: Path) -> None:
    lab, _ = shop(tmp_path / "shop.db")
    lab.runtime.close()
    other = Lab(LabSettings())
    other.llm.script(clerk=SCRIPT)
    with pytest.raises(Damaged, match=line_with("store", "'agent:clerk'", "not have")):
        other.runtime.keep_in(f"sqlite:{tmp_path / 'shop.db'}", agents=[Agent("cook", "You cook.")])
    other.runtime.close()


def test_the_command_shows_an_applications_run_and_leaves_it_to_the_application(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed_shop(tmp_path / "shop.db", dies_at=24)
    address = f"sqlite:{tmp_path / 'shop.db'}"
    for arguments, told in (
        (("list",), "main  running, revision"),
        (("show", "one"), "    shared = ["),
        (
            ("resume",),
            "the run belongs to an application; start the application again to continue it\n0 resumed",
        ),
    ):
        with pytest.raises(SystemExit) as exit_:
            main(["jobs", *arguments, "--store", address])
        assert exit_.value.code == 0
        assert told in capsys.readouterr().out


def test_a_runtime_is_kept_once_and_before_it_has_jobs(tmp_path: Path) -> None:
    lab, _ = shop(tmp_path / "shop.db")
    with pytest.raises(BadInput, match="this runtime is already kept in a store"):
        lab.runtime.keep_in(f"sqlite:{tmp_path / 'other.db'}", agents=[])
    lab.runtime.close()
    late = Lab(LabSettings())
    agent = clerk()
    late.runtime.create_job(agent)
    with pytest.raises(BadStore, match=line_with("keep_in", "before", "already has 1")):
        late.runtime.keep_in(f"sqlite:{tmp_path / 'late.db'}", agents=[agent])
    late.runtime.close()


def test_a_queue_of_the_fixtures_is_kept(tmp_path: Path) -> None:
    from statek_sim.world.queue import ItemStatus, QueueOwner, WorkItem

    for status in (ItemStatus.READY, ItemStatus.CLAIMED):
        lab = Lab(LabSettings(items=(WorkItem("a"),)))
        kept = lab.runtime.keep_in(f"sqlite:{tmp_path / 'q.db'}", agents=[], kept={"queue": lab.queue})
        assert kept.kept["queue"] is lab.queue
        assert lab.queue.items["a"].status is status
        if status is ItemStatus.READY:
            lab.queue.claim_next(QueueOwner("me"))
            lab.runtime.run()
        lab.runtime.close()


def test_a_damaged_store_is_told_and_given_back(tmp_path: Path) -> None:
    lab, _ = shop(tmp_path / "shop.db")
    lab.runtime.close()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("UPDATE statek_events SET content = '{}' WHERE number = 3")
    other = Lab(LabSettings())
    other.llm.script(clerk=SCRIPT)
    with pytest.raises(Damaged, match=line_with("run 'main'", "cannot be resumed", "KeyError: 'event'")):
        other.runtime.keep_in(f"sqlite:{tmp_path / 'shop.db'}", agents=[clerk()])
    other.runtime.close()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert database.execute("SELECT worker FROM statek_runs").fetchall() == [("",)]
