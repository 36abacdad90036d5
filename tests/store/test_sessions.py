"""What sessions promise, in every store: the same tests on files, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from statek_sim.agent.checkpoints.seals import Entry, MemoryAnchor
from statek_sim.agent.effects import Receipt
from statek_sim.errors import BadInput, Damaged, Fenced, Held, OtherPlan
from statek_sim.store.protocol import Changes, Lease
from tests.says import line_with
from tests.store.conftest import MakeSessions, Seconds


def entry(number: int = 1, **changes: object) -> Entry:
    told: dict[str, object] = {"point": "began", "status": "running", "at": 1.5, "state": {"number": number}}
    return Entry(**(told | changes))  # type: ignore[arg-type]


def receipt(key: str = "1.1", text: str = "done") -> Receipt:
    return Receipt(job="main", key=key, at=2.0, status="returned", text=text)


def test_what_was_saved_is_there_for_another_process(make_sessions: MakeSessions) -> None:
    store = make_sessions()
    lease = store.claim("s", worker="a", plan="p")
    state = {"b": 1, "a": (1.0, "\0§", b"\xff", Decimal("1.10"), None, 1e300, 2**70)}
    assert store.save(lease, entry(state=state, progress={"completed": ["x"]}, results=[("x", "y")])) == 1
    store.note(lease, receipt())
    store.note(lease, receipt("1.2", "\ud800"))
    kept = make_sessions().latest("s")
    assert kept is not None
    assert kept.checkpoint.entry.state == state
    assert list(kept.checkpoint.entry.state) == ["b", "a"]
    assert (kept.checkpoint.number, kept.checkpoint.plan, kept.checkpoint.entry.at) == (1, "p", 1.5)
    assert kept.receipts == (receipt(), receipt("1.2", "\ud800"))


def test_receipts_are_those_since_the_newest_checkpoint(make_sessions: MakeSessions) -> None:
    store = make_sessions()
    lease = store.claim("s", worker="a", plan="p")
    store.save(lease, entry())
    store.note(lease, receipt())
    store.save(lease, entry(2))
    kept = store.latest("s")
    assert kept is not None
    assert (kept.checkpoint.number, kept.receipts) == (2, ())


def test_a_session_that_was_never_saved_is_not_there(make_sessions: MakeSessions) -> None:
    store = make_sessions()
    assert store.latest("s") is None
    store.claim("s", worker="a", plan="p")
    assert store.latest("s") is None


def test_numbers_are_numbers_and_not_texts(make_sessions: MakeSessions) -> None:
    store = make_sessions()
    lease = store.claim("s", worker="a", plan="p")
    for number in range(1, 13):
        store.save(lease, entry(number))
    assert store.prune(lease, 4) == 8
    assert list(store.numbers("s")) == [9, 10, 11, 12]
    kept = store.latest("s")
    assert kept is not None
    assert kept.checkpoint.entry.state == {"number": 12}


@pytest.mark.parametrize("keep", [0, -1])
def test_the_newest_checkpoint_is_never_pruned(make_sessions: MakeSessions, keep: int) -> None:
    store = make_sessions()
    lease = store.claim("s", worker="a", plan="p")
    with pytest.raises(BadInput, match=line_with("prune", "at least 1 checkpoint", f"got {keep}")):
        store.prune(lease, keep)


def test_an_earlier_checkpoint_is_saved_again_as_the_newest(make_sessions: MakeSessions) -> None:
    sessions = make_sessions()
    lease = sessions.claim("s", worker="w", plan="p")
    for at in (1.0, 2.0, 3.0):
        sessions.save(lease, entry(at=at))
    sessions.note(lease, receipt())
    assert sessions.save_again(lease, 2) == 4
    kept = sessions.latest("s")
    assert kept is not None
    assert (kept.checkpoint.number, kept.checkpoint.entry.at, kept.receipts) == (4, 2.0, ())
    assert sessions.numbers("s") == range(1, 5)
    with pytest.raises(BadInput, match=line_with("session 's'", "no checkpoint 9", "1 to 4")):
        sessions.save_again(lease, 9)


def test_sessions_do_not_see_each_other(make_sessions: MakeSessions) -> None:
    store = make_sessions()
    for session in ("a", "../a", "A/b", ".hidden"):
        store.save(store.claim(session, worker="w", plan="p"), entry(status="paused", state={"of": session}))
    for session in ("a", "../a", "A/b", ".hidden"):
        kept = store.latest(session)
        assert kept is not None
        assert kept.checkpoint.entry.state == {"of": session}
    assert list(store.sessions("paused")) == ["../a", ".hidden", "A/b", "a"]
    assert list(store.sessions("running")) == []


def test_a_session_of_another_task_is_refused(make_sessions: MakeSessions) -> None:
    make_sessions().claim("s", worker="a", plan="old")
    with pytest.raises(OtherPlan, match=line_with("session 's'", "saved for plan old", "resume is new")):
        make_sessions().claim("s", worker="a", plan="new")


def test_of_two_workers_one_wins_until_its_lease_runs_out_and_then_the_first_is_fenced(
    make_sessions: MakeSessions, seconds: Seconds
) -> None:
    one, other = make_sessions(), make_sessions()
    lease = one.claim("s", worker="a", plan="p")
    one.save(lease, entry())
    one.save(lease, entry(2))
    with pytest.raises(Held, match=line_with("run 's'", "worker 'a'", "lease", "60 s")):
        other.claim("s", worker="b", plan="p")
    seconds.now += 61
    taken = other.claim("s", worker="b", plan="p")
    for late in (
        lambda: one.save(lease, entry(3)),
        lambda: one.note(lease, receipt()),
        lambda: one.prune(lease, 1),
    ):
        with pytest.raises(Fenced, match=line_with("run 's'", "worker 'a'", "no longer", "lease")):
            late()
    one.release(lease)
    assert other.save(taken, entry(3)) == 3


def test_the_next_session_is_the_one_that_waits_longest(
    make_sessions: MakeSessions, seconds: Seconds
) -> None:
    store = make_sessions()
    for session in ("late", "early", "done", "waits"):
        seconds.now += 1
        lease = store.claim(session, worker="a", plan="p")
        store.save(lease, entry(status={"done": "completed", "waits": "paused"}.get(session, "running")))
        if session != "early":
            store.release(lease)
    assert store.claim_next(worker="b") == Lease(run="late", fence=2, worker="b", revision=1)
    assert store.claim_next(worker="b") is None
    seconds.now += 60
    assert [
        lease and lease.run for lease in (store.claim_next(worker="c"), store.claim_next(worker="c"))
    ] == [
        "early",
        "late",
    ]


def test_with_another_key_nothing_is_read(make_sessions: MakeSessions) -> None:
    store = make_sessions(key=b"k" * 16)
    store.save(store.claim("s", worker="a", plan="p"), entry())
    assert make_sessions(key=b"k" * 16).latest("s") is not None
    with pytest.raises(Damaged, match=line_with("seal", "invalid", "another key")):
        make_sessions(key=b"K" * 16).latest("s")


class MeanwhileAnchored(MemoryAnchor):
    """An anchor that is asked while somebody else saves."""

    def __init__(self, acts: list[Callable[[], None]]) -> None:
        super().__init__()
        self._acts = acts

    def read(self, session: str) -> tuple[int, str] | None:
        if self._acts:
            self._acts.pop(0)()
        return super().read(session)


def test_who_reads_while_a_worker_saves_and_prunes_sees_a_whole_session(make_sessions: MakeSessions) -> None:
    acts: list[Callable[[], None]] = []
    anchor = MeanwhileAnchored(acts)
    worker, reader = make_sessions(anchor=anchor), make_sessions(anchor=anchor)
    lease = worker.claim("s", worker="a", plan="p")
    for number in range(1, 7):
        worker.save(lease, entry(number))

    def save_and_prune() -> None:
        worker.save(lease, entry(7))
        worker.save(lease, entry(8))
        worker.prune(lease, 1)

    acts += [save_and_prune, save_and_prune]
    kept = reader.latest("s")
    assert kept is not None
    assert (kept.checkpoint.number, acts) == (10, [])


def test_a_row_that_is_removed_is_damage(make_sessions: MakeSessions) -> None:
    """Rows that are removed from under a session are noticed, each of them."""
    store = make_sessions()
    lease = store.claim("s", worker="a", plan="p")
    for number in (1, 2, 3):
        store.save(lease, entry(number))
    store.note(lease, receipt("1.1"))
    store.note(lease, receipt("1.2"))
    stored = store._store.load("s")
    for name, what in (
        ("checkpoints/cp-0001.json", "checkpoints were removed or added"),
        ("checkpoints/cp-0003.json", "checkpoints were removed or added"),
        ("receipts/cp-0003-0001.json", "receipt 1 after checkpoint 3 was removed"),
        ("head.json", "head.json was removed"),
    ):
        lease_now = store._store.claim("s", worker="a", kind="session")
        damaged = store._store.commit(lease_now, Changes(gone=[name]))
        with pytest.raises(Damaged, match=what):
            make_sessions().latest("s")
        store._store.commit(damaged, Changes(rows={name: stored.rows[name]}))
    assert make_sessions().latest("s") is not None
