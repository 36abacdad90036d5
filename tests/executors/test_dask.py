"""The Dask executor on a scheduler and workers in real processes: nothing lost, nothing twice, the bytes of serial."""

from __future__ import annotations

import importlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from statek_sim.cli import main
from statek_sim.errors import BadInput
from statek_sim.executors import dask_cluster
from statek_sim.executors.by_name import executor_for
from statek_sim.executors.dask_cluster import DaskExecutor
from statek_sim.executors.pool import Killed
from tests.executors.cluster import Cluster
from tests.explore import samples
from tests.says import line_with

pytestmark = [
    pytest.mark.slow,
    # What is left of connections to processes that were killed goes when the garbage collector comes.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WORK = """
import os, signal, time

def piece(folder, number):
    # Real work, in seconds of the machine, so that a kill finds somebody at it.
    until = time.process_time() + 0.005
    while time.process_time() < until:
        pass
    if number == 20:
        with open(os.path.join(folder, "at-work"), "a") as told:
            told.write(f"{os.getpid()}\\n")
    return number, number * number

def refuses(number):
    if number == 5:
        raise ValueError("five is not for us")
    return number

def poison(number):
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return number
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that workers can import, since they start in its folder."""
    (tmp_path / "cluster_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cluster(work: Path) -> Iterator[Cluster]:
    with Cluster(work) as made:
        made.add_worker()
        yield made


def test_a_worker_that_is_killed_in_the_middle_loses_nothing_and_nothing_comes_twice(
    cluster: Cluster, work: Path
) -> None:
    cluster_work = importlib.import_module("cluster_work")
    cluster.add_worker()
    with executor_for(f"dask:{cluster.address}") as executor:
        assert executor.width == 2
        came = executor.map(cluster_work.piece, ((str(work), number) for number in range(600)))
        found = [next(came) for _ in range(21)]
        (at_work,) = {int(line) for line in (work / "at-work").read_text().splitlines()}
        # The one that did piece 20 has its next batch by now.
        victim = next(each for each in cluster.workers if each.pid == at_work)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        found += came
        assert executor.width == 1
    assert found == [(number, number * number) for number in range(600)]


def test_what_kills_every_worker_is_named_and_the_rest_is_done(work: Path) -> None:
    cluster_work = importlib.import_module("cluster_work")
    with Cluster(work) as cluster:
        cluster.add_worker(nanny=True)
        with executor_for(f"dask:{cluster.address}") as executor:
            came = list(executor.map(cluster_work.poison, ((number,) for number in range(20))))
    assert came[7] == Killed("every worker that ran the task died", "")
    assert [one for one in came if not isinstance(one, Killed)] == [n for n in range(20) if n != 7]


def test_work_is_submitted_raises_and_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster_work = importlib.import_module("cluster_work")
    with executor_for(f"dask:{cluster.address}") as executor:
        first, second = executor.submit(cluster_work.refuses, 1), executor.submit(cluster_work.refuses, 5)
        with pytest.raises(ValueError, match=r"^five is not for us$"):
            second.result()
        assert first.result() == 1
        with pytest.raises(BadInput, match=line_with("function", "arguments", "cannot be sent")):
            list(executor.map(lambda number: number, [(1,)]))
        monkeypatch.setattr(dask_cluster, "code_here", lambda: "Python 2.7, statek_sim 0")
        with pytest.raises(
            BadInput,
            match=r"a worker runs Python 3\.\d+, statek_sim [0-9a-f]{16}, but this process runs Python 2",
        ):
            list(executor.map(abs, [(1,)]))


def test_a_command_finds_the_same_as_serial(cluster: Cluster, work: Path) -> None:
    (work / "claim.yaml").write_text(samples.CLAIM)
    (work / "two.yaml").write_text(samples.TWO_JOBS)
    cluster.add_worker()
    for name, executor in (("here", "serial"), ("there", f"dask:{cluster.address}")):
        command = ["explore", "claim.yaml", "two.yaml", "--kind", "crashes", "--kind", "limits"]
        with pytest.raises(SystemExit) as exit_:
            main([*command, "--executor", executor, "--json", f"explore-{name}.json"])
        assert exit_.value.code in (0, 1)
    here, there = (json.loads((work / f"explore-{name}.json").read_text()) for name in ("here", "there"))
    assert here["scenarios"] == there["scenarios"]


def test_a_scheduler_that_goes_away_is_one_line(cluster: Cluster, work: Path) -> None:
    cluster_work = importlib.import_module("cluster_work")
    with executor_for(f"dask:{cluster.address}") as executor:
        came = executor.map(cluster_work.piece, ((str(work), number) for number in range(100_000)))
        assert next(came) == (0, 0)
        cluster.kill_scheduler()
        with pytest.raises(BadInput, match=r"^--executor dask:\S+: the scheduler was lost, along with its"):
            list(came)


def test_nobody_at_the_address_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT", 0.3)
    with pytest.raises(BadInput, match=line_with("--executor dask:127.0.0.1:1", "no answer", "0.3 s")):
        DaskExecutor("127.0.0.1:1")


def test_a_cluster_without_workers_is_bad_input(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "WORKERS", 0.3)
    with (
        Cluster(work) as cluster,
        pytest.raises(BadInput, match=line_with("no worker", "0.3 s")),
    ):
        DaskExecutor(cluster.address)


def test_the_code_here_is_told_by_python_and_sources() -> None:
    assert dask_cluster.code_here().startswith("Python 3.")
    assert dask_cluster.code_here() == dask_cluster.code_here()
