"""Stores of files: what their folders look like, locks, crashes between two files, damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.errors import BadStore, Damaged, Held
from statek_sim.store.disk import RealDisk
from statek_sim.store.files import FileStore
from statek_sim.store.protocol import Changes
from tests.says import line_with
from tests.store.conftest import Seconds
from tests.store.test_sessions import entry, receipt


def test_people_find_the_checkpoints_progress_and_outputs_of_a_session(tmp_path: Path) -> None:
    store = SessionStore(FileStore(RealDisk(tmp_path), clock=float))
    lease = store.claim("book/1", worker="w", plan="p")
    progress = {"current": "pay", "completed": ["read"], "remaining": ["pay"], "tokens": 12, "cost": 0.5}
    store.save(lease, entry(1, progress=progress, results=[("read(1)", "text")]))
    store.note(lease, receipt())
    folder = tmp_path / "book%2F1"
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
        "checkpoints/cp-0001.json",
        "head.json",
        "lock",
        "progress.txt",
        "receipts/cp-0001-0001.json",
        "results/step-01-output.md",
        "run.json",
    ]
    assert (folder / "results" / "step-01-output.md").read_text() == "# read(1)\n\ntext\n"
    assert (folder / "progress.txt").read_text().splitlines() == [
        "Session: book/1", "Status: running", "Step: 1", "Current: pay", "Completed: read", "Remaining: pay",
        "Tokens used: 12", "Cost: $0.5000", "Updated: 1.5 s",
    ]  # fmt: skip


def test_what_was_appended_and_not_committed_is_cut_off_by_the_next_claim(tmp_path: Path) -> None:
    store = FileStore(RealDisk(tmp_path), clock=float)
    store.commit(store.claim("one", worker="w", about={}), Changes(events=["x", "y"]))
    log = tmp_path / "one" / "events.jsonl"
    log.write_text(log.read_text() + "z\nhalf")
    assert list(store.load("one").events) == ["x", "y"]
    store.commit(store.claim("one", worker="w"), Changes(events=["w"]))
    assert list(store.load("one").events) == ["x", "y", "w"]


@pytest.mark.parametrize("content", [b"x\n", b"x\nz\n", b"", b"\xff\n\n"])
def test_events_that_are_not_what_was_saved_are_damage(tmp_path: Path, content: bytes) -> None:
    store = FileStore(RealDisk(tmp_path), clock=float)
    store.commit(store.claim("one", worker="w", about={}), Changes(events=["x", "y"]))
    (tmp_path / "one" / "events.jsonl").write_bytes(content)
    with pytest.raises(Damaged, match=line_with("files: ", "'one'", "events.jsonl", "not match")):
        store.load("one")


def test_a_row_that_is_gone_and_a_run_json_that_is_gone_are_damage(tmp_path: Path) -> None:
    store = FileStore(RealDisk(tmp_path), clock=float)
    lease = store.claim("one", worker="w", about={})
    store.commit(store.commit(lease, Changes(rows={"root": "1"})), Changes(rows={"root": "2"}))
    assert dict(store.load("one").rows) == {"root": "2"}
    row, run = tmp_path / "one" / "root~", tmp_path / "one" / "run.json"
    row.rename(tmp_path / "one" / "elsewhere")
    with pytest.raises(Damaged, match=line_with("files: ", "'one'", "root~", "gone", "backup")):
        store.load("one")
    run.unlink()
    with pytest.raises(Damaged, match=line_with("files: ", "'one'", "run.json", "removed")):
        store.claim("one", worker="w", about={})
    assert [(listed.run, listed.status) for listed in store.runs()] == [("one", "damaged")]


def test_a_run_of_a_newer_package_is_refused(tmp_path: Path) -> None:
    store = FileStore(RealDisk(tmp_path), clock=float)
    store.claim("one", worker="w", about={})
    path = tmp_path / "one" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    with pytest.raises(BadStore, match=line_with("run.json", "version 2", "up to 1")):
        store.load("one")


def test_a_process_that_is_frozen_in_a_write_does_not_hold_others_up_for_ever(tmp_path: Path) -> None:
    with RealDisk(tmp_path).locked("lock"):
        waits = RealDisk(tmp_path, wait=0.05).locked("lock")
        with (
            pytest.raises(Held, match=line_with("lock: ", "another process", "0.05 s")),
            waits,
        ):
            pass


def test_a_worker_that_is_frozen_in_a_write_keeps_nobody_from_other_sessions(tmp_path: Path) -> None:
    seconds = Seconds()
    store = SessionStore(FileStore(RealDisk(tmp_path, wait=0.05), clock=seconds))
    for session in ("a", "b"):
        store.save(store.claim(session, worker="w", plan="p"), entry())
    seconds.now += 1000
    with RealDisk(tmp_path).locked("a/lock"):
        lease = store.claim_next(worker="v")
        assert lease is not None
        assert lease.run == "b"
        assert store.claim_next(worker="v") is None


def test_what_is_damaged_or_somebody_elses_in_a_folder_keeps_nobody_from_other_sessions(
    tmp_path: Path,
) -> None:
    store = SessionStore(FileStore(RealDisk(tmp_path), clock=(seconds := Seconds())))
    for session in ("a", "b"):
        store.save(store.claim(session, worker="w", plan="p"), entry())
    (tmp_path / "README.txt").write_text("These are sessions.")
    (tmp_path / "a" / "run.json").write_text('{"version": 1, "of": {"run": NaN}, "digest": ""}')
    seconds.now += 1000
    lease = store.claim_next(worker="v")
    assert lease is not None
    assert lease.run == "b"
    assert store.claim_next(worker="v") is None
    assert (store.sessions(), store.sessions("running")) == (["a", "b"], ["b"])
    with pytest.raises(Damaged, match=line_with("files: ", "'a'", "run.json", "not match")):
        store.latest("a")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_no_json_holds_is_damage(tmp_path: Path, number: str) -> None:
    store = SessionStore(FileStore(RealDisk(tmp_path), clock=float))
    store.save(store.claim("s", worker="w", plan="p"), entry())
    (file,) = (tmp_path / "s" / "checkpoints").glob("*.json")
    file.write_text(file.read_text().replace('"at":1.5', f'"at":{number}'))
    with pytest.raises(Damaged, match=line_with("files: ", "'s'", "checkpoints/cp-0001.json", "not match")):
        store.latest("s")
