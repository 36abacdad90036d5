"""The handoff file: nothing is lost, nothing is done twice, and nobody writes into somebody else's task."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.agent.memory import PATH, Handoff, HandoffFile, memory_block
from statek_sim.errors import Damaged, Fenced, Held, OtherPlan
from statek_sim.store.disk import RealDisk
from tests.says import line_with
from tests.store.simulated_disk import Killed, SimulatedDisk
from tests.tables import table_test

STEPS = ("plan", "code", "test")
NOW = "2026-01-01T09:00:00+00:00"


def file_on(disk: SimulatedDisk | RealDisk) -> HandoffFile:
    return HandoffFile(disk, wall=lambda: NOW)


def work(disk: SimulatedDisk, world: list[str]) -> Handoff:
    """Do the steps that are not done; one that may have been done is looked up in the world."""
    file = file_on(disk)
    handoff = file.resume()
    if handoff is None:
        there = file.read()
        if there is not None:
            return there
        handoff = file.begin("Ship it")
    for step in STEPS:
        if step in handoff.done:
            continue
        if step not in handoff.unknown:
            handoff = file.start(step)
            world.append(step)
        elif step not in world:
            world.append(step)
        handoff = file.finish(step, f"{step}.md")
    return file.complete()


def test_killed_at_every_write_with_power_lost_no_step_is_redone_or_lost() -> None:
    disk = SimulatedDisk()
    expected = work(disk, [])
    states = 0
    for point in range(disk.operations):
        dying, world = SimulatedDisk(dies_at=point), list[str]()
        try:
            work(dying, world)
        except Killed:
            pass
        for left in dying.after_crash():
            states += 1
            after = [*world]
            resumed = work(left, after)
            assert after == list(STEPS), (point, left.files)
            assert (resumed.done, resumed.artifacts, resumed.status) == (
                expected.done,
                expected.artifacts,
                "completed",
            )
    assert states > disk.operations


def test_the_session_before_is_fenced() -> None:
    disk = SimulatedDisk()
    first, second = file_on(disk), file_on(disk)
    first.begin("Ship it")
    resumed = second.resume()
    assert resumed is not None
    assert resumed.fence == 2
    second.finish("plan")
    with pytest.raises(Fenced, match=line_with(f"{PATH}: ", "'Ship it'", "another session")):
        first.finish("code")
    there = first.read()
    assert there is not None
    assert there.done == ("plan",)


def test_a_task_in_progress_is_not_overwritten() -> None:
    disk = SimulatedDisk()
    file = file_on(disk)
    file.begin("Ship it")
    with pytest.raises(OtherPlan, match=line_with("'Ship it'", "in progress", "before 'Other'")):
        file_on(disk).begin("Other")
    with pytest.raises(Held, match=line_with("'Ship it'", "in progress", "resume")):
        file_on(disk).begin("Ship it")
    file.complete()
    assert file_on(disk).resume() is None
    assert file_on(disk).begin("Other").fence == 2


def test_a_step_that_is_done_twice_is_one_step_and_one_that_did_not_happen_is_open() -> None:
    file = file_on(SimulatedDisk())
    file.begin("Ship it")
    file.finish("plan", "a.md")
    assert file.finish("plan", "b.md").artifacts == ("a.md",)
    assert file.start("code").unknown == ("code",)
    assert file.forget("code").unknown == ()


def test_the_documents_file_is_read_and_what_it_does_not_know_stays(tmp_path: Path) -> None:
    told = {
        "task": "Ship it",
        "started_at": NOW,
        "status": "in_progress",
        "completed_steps": [{"step": "plan", "timestamp": NOW}],
        "artifacts_created": ["plan.md"],
        "notes": "",
        "last_updated": NOW,
        "owner": {"team": "b"},
    }
    (tmp_path / PATH).write_text(json.dumps(told))
    handoff = file_on(RealDisk(tmp_path)).resume()
    assert handoff is not None
    assert (handoff.done, handoff.artifacts) == (("plan",), ("plan.md",))
    assert json.loads((tmp_path / PATH).read_text())["owner"] == {"team": "b"}


@table_test(
    "content",
    [b"", b"{", b"[]", b'{"task": 1}', b'{"version": 2}', b"\xff\xfe", b'{"task":"a"}', b"[" * 100_000],
)
def test_a_damaged_file_says_what_it_is(content: bytes) -> None:
    with pytest.raises(
        Damaged, match=rf"^{re.escape(PATH)} (is not JSON|is not a handoff file|has version 2)"
    ):
        file_on(SimulatedDisk({PATH: content})).resume()


def test_a_file_that_is_no_text_is_refused_with_the_line_and_nothing_of_it_is_replaced() -> None:
    disk = SimulatedDisk()
    file_on(disk).begin("Ship it")
    content = disk.read(PATH)
    assert content is not None
    torn = SimulatedDisk({PATH: content.replace(b"Ship it", b"Ship \xff")})
    with pytest.raises(
        Damaged,
        match=line_with(PATH, "not JSON", "0xff", "line 2", "UTF-8"),
    ):
        file_on(torn).resume()


@given(st.text(), st.text(), st.lists(st.text(), max_size=60))
def test_no_text_of_a_session_begins_a_line_of_the_block(task: str, note: str, steps: list[str]) -> None:
    done = tuple((step, NOW) for step in steps)
    handoff = Handoff(
        task=task, started_at=NOW, last_updated=NOW, completed=done, notes=note, artifacts=tuple(steps)
    )
    heads = (
        r"(## Session Memory|Task: \"|Completed steps:|  ✓ \"|  \(\d+ earlier|  none|Artifacts created: |Notes: \"|"
        r"What is|\*\*IMP|$)"
    )
    block = memory_block(handoff)
    assert all(re.match(heads, line) for line in block.splitlines())
    assert len([line for line in block.splitlines() if line.startswith("**IMPORTANT")]) == 1
    assert len(block) < 70 * 2 * 250
