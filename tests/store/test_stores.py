"""What every store promises, of runs of any kind: leases, revisions, takeovers, addresses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from statek_sim.errors import BadInput, BadStore, Fenced, Held, NoSuchRun
from statek_sim.store.database import Sqlite
from statek_sim.store.disk import RealDisk
from statek_sim.store.files import FileStore
from statek_sim.store.open import open_store, without_password
from statek_sim.store.protocol import Changes, Kind, Lease
from statek_sim.store.sql import SqlStore
from statek_sim.store.worker import worker_name
from tests.says import line_with
from tests.store.conftest import MakeStore, Seconds
from tests.store.dying import in_a_process
from tests.tables import table_test

ABOUT = {"what": "a test"}


def test_what_was_committed_is_there_for_another_process(make_store: MakeStore) -> None:
    store = make_store()
    lease = store.claim("one", worker="a", about=ABOUT)
    lease = store.commit(lease, Changes(rows={"root": "1", "e1": "2"}, events=["x"]))
    store.commit(lease, Changes(rows={"e1": "3", "e2": "\\u0000"}, gone=["root"], events=["y", "z"]))

    found = make_store().load("one")
    assert (dict(found.rows), list(found.events)) == ({"e1": "3", "e2": "\\u0000"}, ["x", "y", "z"])
    assert (found.revision, found.status, dict(found.about)) == (2, "running", ABOUT)


@pytest.fixture(params=["jobs", "session"])
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


def test_a_run_that_somebody_works_on_is_refused_to_others_until_the_lease_runs_out(
    make_store: MakeStore, seconds: Seconds, kind: Kind
) -> None:
    first, second = make_store(), make_store()
    first.commit(first.claim("one", worker="a", kind=kind, about=ABOUT), Changes())
    seconds.now += 50
    with pytest.raises(Held, match=line_with("run 'one'", "worker 'a'", "lease", "10 s")):
        second.claim("one", worker="b", kind=kind)
    assert second.claim_next(worker="b", kind=kind) is None
    seconds.now += 11
    taken = second.claim_next(worker="b", kind=kind)
    assert taken == Lease(run="one", worker="b", fence=2, revision=1)


def test_every_commit_and_renewal_begins_the_lease_anew(make_store: MakeStore, seconds: Seconds) -> None:
    store = make_store()
    lease = store.claim("one", worker="a", about=ABOUT)
    for renew in (lambda: store.commit(lease, Changes(events=["x"])), lambda: store.renew(lease)):
        seconds.now += 50
        renew()
        assert store.runs()[0].left == 60


def test_a_worker_that_was_taken_over_commits_and_renews_nothing_more(
    make_store: MakeStore, seconds: Seconds, kind: Kind
) -> None:
    first, second = make_store(), make_store()
    late = first.commit(first.claim("one", worker="a", kind=kind, about=ABOUT), Changes(events=["x"]))
    seconds.now += 61
    second.claim("one", worker="b", kind=kind)
    why = r"worker 'a' no longer has the lease.*; changes after revision 1 are lost$"
    with pytest.raises(Fenced, match=why):
        first.commit(late, Changes(events=["late"]))
    with pytest.raises(Fenced, match=why):
        first.renew(late)
    first.release(late)
    assert list(second.load("one").events) == ["x"]
    assert second.runs(kind)[0].worker == "b"


def test_a_worker_that_is_started_again_fences_what_it_was(make_store: MakeStore) -> None:
    before = make_store().claim("one", worker="a", about=ABOUT)
    now = make_store().claim("one", worker="a")
    assert now.fence == before.fence + 1
    with pytest.raises(Fenced):
        make_store().commit(before, Changes(events=["late"]))


def test_workers_that_ask_at_once_get_different_runs(make_store: MakeStore, kind: Kind) -> None:
    store = make_store()
    for number in range(6):
        store.release(store.claim(f"r{number}", worker="a", kind=kind, about=ABOUT))

    def work(name: str) -> list[str]:
        mine, found = make_store(), []
        while (lease := mine.claim_next(worker=name, kind=kind)) is not None:
            found.append(lease.run)
        return found

    with ThreadPoolExecutor(3) as workers:
        got = [*workers.map(work, ("w0", "w1", "w2"))]
    assert sorted(run for found in got for run in found) == [f"r{number}" for number in range(6)]


@pytest.mark.parametrize(
    "name", ["", "a\nb", "x" * 201, "é" * 100], ids=["empty", "lines", "long", "encoded"]
)
def test_what_cannot_name_a_run_is_refused(make_store: MakeStore, name: str) -> None:
    with pytest.raises(BadStore, match=line_with("name", "printable", "at most 200")):
        make_store().claim(name, worker="a", about=ABOUT)


@pytest.mark.parametrize("lease", [0.0, -1.0, float("nan"), float("inf")])
def test_a_lease_takes_seconds(tmp_path: Path, lease: float) -> None:
    with closing(Sqlite(":memory:")) as database:
        for make in (
            lambda: FileStore(RealDisk(tmp_path), clock=float, lease=lease),
            lambda: SqlStore(database, clock=float, lease=lease),
        ):
            with pytest.raises(BadInput, match=r"^expected a lease time greater than 0 seconds, got "):
                make()


def test_a_worker_whose_revision_is_old_commits_nothing(make_store: MakeStore) -> None:
    store = make_store()
    old = store.claim("one", worker="a", about=ABOUT)
    store.commit(old, Changes(events=["x"]))
    with pytest.raises(Fenced, match="no longer has the lease"):
        store.commit(old, Changes(events=["again"]))
    assert list(store.load("one").events) == ["x"]


@table_test(
    ("address", "visible"),
    [
        ("sqlite:runs.db", "sqlite:runs.db"),
        ("postgresql://me:secret@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db?user=me&password=secret&sslmode=require", "postgresql://host/db?user=me&password=***&sslmode=require"),
        ("postgres://me@host/db?sslpassword=a@b", "postgres://me@host/db?sslpassword=***"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_passwords(address: str, visible: str) -> None:
    assert without_password(address) == visible


def test_a_run_that_ended_is_nobodys_work(make_store: MakeStore) -> None:
    store = make_store()
    store.release(store.commit(store.claim("one", worker="a", about=ABOUT), Changes(status="ended")))
    assert store.claim_next(worker="b") is None
    assert store.runs()[0].status == "ended"


def test_the_lease_of_a_process_that_is_no_more_need_not_run_out(make_store: MakeStore, address: str) -> None:
    def begin() -> None:
        open_store(address, clock=lambda: 0.0).claim("one", worker=worker_name(), about=ABOUT)

    in_a_process(begin)
    listed = make_store().runs()[0]
    assert (listed.worker, listed.left) == ("", 0.0)
    claimed = make_store().claim_next(worker=worker_name())
    assert claimed is not None
    assert claimed.run == "one"


def test_a_process_of_the_same_number_elsewhere_is_another_worker(make_store: MakeStore) -> None:
    """Both are process 1 of a host of one name: the lease of one is no lease of the other."""
    mine = worker_name()
    other = mine.rpartition("/")[0] + "/ffffffff"
    make_store().claim("one", worker=other, about=ABOUT)
    with pytest.raises(Held, match="whose lease lasts another 60 s"):
        make_store().claim("one", worker=mine)
    assert worker_name() == mine


def test_a_run_that_is_not_there_is_named_with_those_that_are(make_store: MakeStore) -> None:
    store = make_store()
    store.claim("one", worker="a", about=ABOUT)
    with pytest.raises(NoSuchRun, match=r"no run 'two'; runs: 'one'$"):
        store.claim("two", worker="a")
    with pytest.raises(NoSuchRun, match=r"no run 'two'; runs: 'one'$"):
        store.load("two")


def test_runs_of_one_kind_are_not_seen_among_those_of_the_other(make_store: MakeStore) -> None:
    store = make_store()
    store.release(store.claim("session", worker="a", kind="session", about=ABOUT))
    store.release(store.claim("jobs", worker="a", about=ABOUT))
    assert [listed.run for listed in store.runs()] == ["jobs"]
    assert [listed.run for listed in store.runs("session")] == ["session"]
    with pytest.raises(BadStore, match=line_with("run 'session'", "kind 'session'", "expected 'jobs'")):
        store.claim("session", worker="a", about=ABOUT)
    claims = [store.claim_next(worker="b"), store.claim_next(worker="b", kind="session")]
    assert [claim and claim.run for claim in claims] == ["jobs", "session"]


def test_a_run_keeps_what_it_is_about_when_it_is_claimed_again(make_store: MakeStore) -> None:
    store = make_store()
    first = store.claim("one", worker="a", about=ABOUT)
    again = store.claim("one", worker="a", about={"what": "another"})
    assert (first.fence, again.fence, again.revision) == (1, 2, 0)
    assert dict(store.load("one").about) == ABOUT


@table_test(
    ("address", "told"),
    [
        ("runs.db", r"^--store 'runs.db': expected 'sqlite:PATH', 'files:FOLDER' or 'postgresql://USER@HOST/DATABASE'$"),
        ("sqlite:", r"^--store 'sqlite:': expected 'sqlite:PATH'"),
        ("sqlite:/no/such/runs.db", r"^sqlite:/no/such/runs.db: folder /no/such does not exist; create it first$"),
        ("postgresql://me:pw@localhost:1/x", r"^postgresql://me@localhost:1/x: .*; check the address and the server$"),
    ],
)  # fmt: skip
def test_an_address_that_leads_nowhere_says_what_to_do(address: str, told: str) -> None:
    with pytest.raises(BadStore, match=f"(?s){told}"):
        open_store(address, clock=lambda: 0.0)
