"""`statek-sim run --store` and `statek-sim jobs`: several processes, one of them killed."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from statek_sim.backends.durable import DurableRun
from statek_sim.cli import main
from statek_sim.explore.variation import undisturbed
from statek_sim.reporting.artifact import schema_named
from statek_sim.store.open import open_store
from statek_sim.store.protocol import Changes, Lease
from statek_sim.store.sql import SqlStore
from statek_sim.store.worker import worker_name
from tests.explore import samples
from tests.says import says
from tests.store.dying import killed_run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claim.yaml").write_text(samples.CLAIM)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(exit_.value.code or 0), out, err


def asked(address: str, statement: str, *values: str) -> list[tuple[Any, ...]]:
    """Ask the database itself."""
    with closing(open_store(address)) as store:
        assert isinstance(store, SqlStore)
        return store._database.execute(statement, values)


def test_a_run_on_a_store_is_the_same_run_and_stays_there(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    arguments = ("run", "claim.yaml", "--profile", "docs", "--watchdog", "off", "--quiet")
    _, plain, _ = run(capsys, *arguments)
    code, stored, _ = run(capsys, *arguments, "--store", "sqlite:runs.db")
    again = run(capsys, *arguments, "--store", "sqlite:runs.db")[1]
    digests = {told.rpartition("digest ")[2] for told in (plain, stored, again)}
    assert (code, len(digests)) == (0, 1)

    code, out, _ = run(capsys, "jobs", "list", "--store", "sqlite:runs.db")
    assert code == 0
    assert "samples/claims[docs]  ended, revision " in out
    assert "main                 clerk            DONE           2 turns  exit" in out

    told = json.loads(run(capsys, "jobs", "list", "--store", "sqlite:runs.db", "--json", "-")[1])
    jsonschema.Draft202012Validator(schema_named("jobs")).validate(told)
    assert told["runs"][0]["jobs"] == [{"id": "main", "role": "clerk", "status": "DONE"}]


def test_show_reads_a_job_from_the_store_alone(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    run(capsys, "run", "claim.yaml", "--profile", "docs", "--watchdog", "off", "--store", "sqlite:runs.db")
    (here / "claim.yaml").unlink()
    code, out, _ = run(capsys, "jobs", "show", "main", "--store", "sqlite:runs.db")
    assert code == 0
    assert "job main of run samples/claims[docs], agent clerk\n  status    DONE (exit)" in out
    assert (
        '    item = {"kind": "WorkItem", "id": "invoice-1", "status": "DONE", "owner_id": "worker-1"' in out
    )
    assert '    {"handler": ' in out

    code, out, _ = run(capsys, "jobs", "show", "main", "--store", "sqlite:runs.db", "--json", "-")
    told = json.loads(out)
    jsonschema.Draft202012Validator(schema_named("job")).validate(told)
    assert (told["schema"], told["exit"], told["turns"]) == ("statek-sim/job@1", "ok", 2)
    assert told["locals"]["owner"] == "<owner>"


def test_a_killed_run_is_gone_on_with(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    scenario = samples.scenario(here, samples.CLAIM)
    base = undisturbed(scenario, "docs")
    killed_run("sqlite:runs.db", scenario, "docs", base.points[10].place)
    assert "running, revision" in run(capsys, "jobs", "list", "--store", "sqlite:runs.db")[1]

    assert "1 resumed" in run(capsys, "jobs", "resume", "--store", "sqlite:runs.db")[1]
    _, listed, _ = run(capsys, "jobs", "list", "--store", "sqlite:runs.db")
    assert "ended, revision" in listed
    assert run(capsys, "jobs", "resume", "--store", "sqlite:runs.db")[1] == "0 resumed, 0 failed\n"
    events = [
        json.loads(row[0])
        for row in asked("sqlite:runs.db", "SELECT content FROM statek_events ORDER BY number")
    ]
    assert [event["change"] for event in events if event.get("subject") == "worker"] == [
        "its process died",
        "restarted",
    ]


def test_bad_input_exits_with_2_and_says_what_to_do(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "notes.db").write_text("no database at all, " * 50)
    for arguments, told in (
        (
            ("jobs", "list", "--store", "sqlite:none.db"),
            "sqlite:none.db: no such file; `statek-sim run",
        ),
        (
            ("jobs", "list", "--store", "sqlite:notes.db"),
            "sqlite:notes.db: not a SQLite database, or damaged",
        ),
        (("run", "claim.yaml", "--store", "mysql:x"), "--store 'mysql:x': expected 'sqlite:PATH', "),
        (("run", "claim.yaml", "--store", "sqlite:x.db", "--backend", "installed"), "remove --backend"),
    ):
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert told in err
        assert "Traceback" not in err


def test_a_run_that_is_taken_over_exits_with_2_and_one_line(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker takes it while this one works: its lease had run out."""
    commit = SqlStore.commit
    taken: list[Lease] = []

    def late(self: SqlStore, lease: Lease, changes: Changes) -> Lease:
        if not taken and lease.revision > 12:
            taken.append(self.claim(lease.run, worker=lease.worker))
        return commit(self, lease, changes)

    monkeypatch.setattr(SqlStore, "commit", late)
    # In this process: a worker is a copy of it, which sends the error back.
    here_only = ("--profile", "docs", "--watchdog", "off")
    code, _, err = run(capsys, "run", "claim.yaml", *here_only, "--store", "sqlite:runs.db")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("sqlite:runs.db: run 'samples/claims[docs]': worker '")
    assert "no longer has the lease" in err


def killed_in_the_middle(here: Path, *names: str) -> None:
    """Leave runs in a store that somebody has to go on with."""
    scenario = samples.scenario(here, samples.CLAIM)
    base = undisturbed(scenario, "docs")
    for name in names:
        one = scenario.model_copy(update={"id": name})
        killed_run("sqlite:runs.db", one, "docs", base.points[10].place)


@pytest.mark.parametrize(
    "damage",
    [
        """UPDATE statek_rows SET content = '{"k":"root","v":{}}' WHERE name = 'root'""",
        """UPDATE statek_rows SET content = '{"k":"Job","v":{}}' WHERE content LIKE '{"k":"Job",%'""",
        """UPDATE statek_rows SET content = '[]' WHERE content LIKE '{"k":"Life",%'""",
        """UPDATE statek_events SET content = '{}' WHERE number = 2""",
        """UPDATE statek_events SET content = '{"event":"JobCreated","nonsense":1}' WHERE number = 2""",
        """UPDATE statek_events SET content = 'no JSON' WHERE number = 2""",
    ],
)
def test_rows_and_events_that_can_be_read_and_are_wrong_are_told_as_damage(
    capsys: pytest.CaptureFixture[str], here: Path, damage: str
) -> None:
    killed_in_the_middle(here, "claims")
    asked("sqlite:runs.db", damage)
    code, _, err = run(capsys, "jobs", "resume", "samples/claims[docs]", "--store", "sqlite:runs.db")
    assert code == 2
    assert says(err, "sqlite:runs.db: ", "'samples/claims[docs]'", "cannot be resumed", "backup", "start")
    assert asked("sqlite:runs.db", "SELECT worker, status FROM statek_runs") == [("", "running")]


@pytest.mark.parametrize("table", ["statek_rows", "statek_events"])
def test_a_damaged_run_is_told_and_the_others_are_shown_and_gone_on_with(
    capsys: pytest.CaptureFixture[str], here: Path, table: str
) -> None:
    killed_in_the_middle(here, "a", "b", "c")
    asked("sqlite:runs.db", f"DELETE FROM {table} WHERE run = 'samples/a[docs]' AND rowid % 2 = 0")
    code, out, _ = run(capsys, "jobs", "list", "--store", "sqlite:runs.db")
    assert code == 2
    heads = [line for line in out.splitlines() if "cannot be read: " in line or "main " in line]
    assert [line.split()[0] for line in heads] == ["cannot", "main", "main"]
    _, out, _ = run(capsys, "jobs", "list", "--store", "sqlite:runs.db", "--json", "-")
    told = [(one["problem"] is None, len(one["jobs"])) for one in json.loads(out)["runs"]]
    assert told == [(False, 0), (True, 1), (True, 1)]
    code, out, _ = run(capsys, "jobs", "show", "samples/b[docs]:main", "--store", "sqlite:runs.db")
    assert (code, "job main of run samples/b[docs]" in out) == (0, True)
    code, _, err = run(capsys, "jobs", "show", "nobody", "--store", "sqlite:runs.db")
    assert (code, "; cannot be read: " in err) == (2, True)

    code, out, _ = run(capsys, "jobs", "resume", "--store", "sqlite:runs.db")
    assert code == 2
    *lines, last = out.splitlines()
    runs = [line.split() for line in lines if line.endswith("[docs]")]
    assert [name for _, name in runs] == [f"samples/{name}[docs]" for name in "abc"]
    assert (runs[0][0], last.split(",")[0]) == ("left", "2 resumed")
    assert last.endswith(", 1 cannot be resumed")


@pytest.mark.parametrize("column", ["about", "events", "lease_until"])
def test_a_value_of_another_type_is_damage(
    capsys: pytest.CaptureFixture[str], here: Path, column: str
) -> None:
    killed_in_the_middle(here, "a")
    # SQLite keeps any value in any column.
    asked("sqlite:runs.db", f"UPDATE statek_runs SET {column} = 'words'")
    code, out, err = run(capsys, "jobs", "list", "--store", "sqlite:runs.db")
    assert (code, says(out + err, "column", "wrong type")) == (2, True)


@pytest.mark.parametrize("command", [("list",), ("show", "main"), ("resume",)])
@pytest.mark.parametrize("table", ["notes", "statek_store"])
def test_somebody_elses_database_is_refused_and_stays_as_it_is(
    capsys: pytest.CaptureFixture[str], here: Path, command: tuple[str, ...], table: str
) -> None:
    with closing(sqlite3.connect(here / "other.db")) as database:
        database.execute(f"CREATE TABLE {table} (format TEXT, version INTEGER)")
    before = (here / "other.db").read_bytes()
    code, _, err = run(capsys, "jobs", *command, "--store", "sqlite:other.db")
    assert (code, err.count("\n")) == (2, 1)
    assert says(err, "sqlite:other.db: ", "not a store", "table statek_store", "empty")
    assert (here / "other.db").read_bytes() == before


def test_list_and_show_change_nothing_and_read_what_is_not_in_the_file_yet(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    """A killed process leaves its last commits in the log beside the file."""
    killed_in_the_middle(here, "claims")
    log = here / "runs.db-wal"
    before = (here / "runs.db").read_bytes(), log.read_bytes()
    assert len(before[1]) > 0
    for command in (("list",), ("show", "main")):
        assert run(capsys, "jobs", *command, "--store", "sqlite:runs.db")[0] == 0
    assert ((here / "runs.db").read_bytes(), log.read_bytes()) == before


def test_an_unknown_job_or_run_names_those_there_are(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    run(capsys, "run", "claim.yaml", "--profile", "docs", "--watchdog", "off", "--store", "sqlite:runs.db")
    code, _, err = run(capsys, "jobs", "show", "nobody", "--store", "sqlite:runs.db")
    assert (code, err) == (
        2,
        "sqlite:runs.db: no job 'nobody'; jobs: samples/claims[docs]:main\n",
    )
    code, _, err = run(capsys, "jobs", "resume", "other", "--store", "sqlite:runs.db")
    assert (code, err) == (2, "sqlite:runs.db: no run 'other'; runs: 'samples/claims[docs]'\n")


MANY = 4


def test_two_workers_share_what_a_third_one_left_and_nothing_is_run_by_two(
    capsys: pytest.CaptureFixture[str], here: Path, address: str
) -> None:
    scenario = samples.scenario(here, samples.CLAIM)
    base = undisturbed(scenario, "docs")
    names = [f"claims-{number}" for number in range(MANY)]
    for number, name in enumerate(names):
        one = scenario.model_copy(update={"id": name})
        killed_run(address, one, "docs", base.points[6 + 2 * number].place)
    command = (sys.executable, "-m", "statek_sim", "jobs", "resume", "--store", address)
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [worker.communicate()[0].splitlines() for worker in workers]

    resumed = sorted(line.split()[1] for lines in told for line in lines if line.startswith(("ok", "FAILED")))
    assert resumed == [f"samples/{name}[docs]" for name in names]
    with closing(open_store(address)) as store:
        for listed in store.runs():
            assert sum('"restarted"' in event for event in store.load(listed.run).events) == 1


def test_what_a_live_worker_holds_is_named_and_what_a_zombie_held_is_resumed(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    killed_in_the_middle(here, "a", "b")
    with closing(open_store("sqlite:runs.db")) as store:
        store.claim("samples/b[docs]", worker="another-machine")
        child = os.fork()
        if child == 0:
            store.claim("samples/a[docs]", worker=worker_name())
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert [listed.worker for listed in store.runs()] == ["", "another-machine"]
        code, out, _ = run(capsys, "jobs", "resume", "--store", "sqlite:runs.db")
        os.waitpid(child, 0)
    assert out.splitlines()[0].split()[1] == "samples/a[docs]"
    assert re.search(r"leased   samples/b\[docs\]\n +by worker another-machine, \d\d s left\n", out)
    assert (code, out.splitlines()[-1]) == (1, "1 resumed, 1 failed, 1 still leased")


def test_a_worker_that_is_killed_while_it_resumes_is_followed_by_another(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    scenario = samples.scenario(here, samples.CLAIM)
    base = undisturbed(scenario, "docs")
    killed_run("sqlite:runs.db", scenario, "docs", base.points[6].place)
    child = os.fork()
    if child == 0:
        try:
            with_death(after=3)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert "1 resumed" in run(capsys, "jobs", "resume", "--store", "sqlite:runs.db")[1]
    deaths = asked(
        "sqlite:runs.db", "SELECT count(*) FROM statek_events WHERE content LIKE ?", "%process died%"
    )
    assert deaths == [(2,)]


def with_death(*, after: int) -> None:
    """Resume, and die after so many commits."""
    commits = 0
    commit = DurableRun.commit

    def dying(self: DurableRun, status: str = "running") -> None:
        nonlocal commits
        commit(self, status)  # type: ignore[arg-type]  # one of two words
        commits += 1
        if commits == after:
            os.kill(os.getpid(), signal.SIGKILL)

    DurableRun.commit = dying  # type: ignore[method-assign]  # in a process that is about to die
    main(["jobs", "resume", "--store", "sqlite:runs.db"])
