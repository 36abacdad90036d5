"""Verdicts, and the matrix in words and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import pytest

from statek_sim.backends.installed.peer import Lost, Ran, installed_record
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.compare import matrix as matrices
from statek_sim.compare.facts import Difference
from statek_sim.compare.matrix import (
    MOST_BY_CHANCE,
    Row,
    Verdict,
    VersionMatrix,
    compared,
    run_matrix,
)
from statek_sim.compare.upgrade import comparison_json
from statek_sim.reporting.comparison import matrix_lines
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario, ScenarioText
from statek_sim.suite.installed import ending
from statek_sim.suite.run import builtin_suites
from statek_sim.trace import (
    CodeExecuted,
    ConsoleLine,
    DifficultyRaised,
    Event,
    ExitCalled,
    JobStopped,
    LLMReplied,
    LLMRequested,
    StatusChanged,
    StepStarted,
    StoreRemark,
)

ONE = Scenario.placed(
    ScenarioText.model_validate({"id": "one", "title": "One.", "agents": {"clerk": {}}, "script": {}}),
    {},
    suite="some",
    path=Path("some.yaml"),
    line=1,
    file_digest="",
)
LEDGER = Difference("ledger", ["a"], ["b"])
TURNS = Difference("jobs.main.turns", 1, 2)


def matrix(*rows: Row) -> VersionMatrix:
    return VersionMatrix(version="1.4.2", profile="1.4", python="3.11.7", rows=rows)


def test_a_version_fails_when_something_differs_each_time() -> None:
    varies, differs = (
        Row(scenario="one", verdict=verdict, differences=(LEDGER,))
        for verdict in (Verdict.VARIES, Verdict.DIFFERS)
    )
    assert not matrix(varies).failed
    assert matrix(varies, differs).failed


def record(**facts: Any) -> RunRecord:
    told = {"worker": None, "idle": False, "settled": True, **facts}
    return installed_record(ONE, "1.4", Ran({"error": None, **told}, facts.get("events", ())), seed=0)


def test_a_run_that_does_not_come_back_differs_in_its_error() -> None:
    lost = installed_record(ONE, "1.4", Lost("hangs: killed after 60 s"), seed=0)

    assert compared(record(), lost) == (Difference("error", None, "hangs: killed after 60 s"),)


def test_a_run_that_comes_back_is_compared_by_its_facts() -> None:
    assert compared(record(ledger=["a"]), record(ledger=["b"])) == (LEDGER,)


def test_traces_are_compared_event_by_event_and_the_first_that_differs_is_told() -> None:
    begun = StepStarted(0.0, "main", 1)
    ours = record(events=(begun, ExitCalled(0.0, "main", "ok")))

    assert compared(ours, record(events=(begun, ExitCalled(0.0, "main", "no")))) == (
        Difference(
            "trace",
            {"position": 1, "event": {"event": "ExitCalled", "at": 0.0, "job": "main", "status": "ok"}},
            {"position": 1, "event": {"event": "ExitCalled", "at": 0.0, "job": "main", "status": "no"}},
        ),
    )


def test_usage_of_a_raised_difficulty_is_that_of_normal_text() -> None:
    """The frames of a traceback are as long as the paths of the machine."""

    def run(frames: str, *, sent: int, tokens: int) -> RunRecord:
        text = f"Traceback (most recent call last):\n{frames}InvalidFormat: no"
        asked = LLMRequested(0.0, "main", 1, 1, "gpt-4o", sent, 0, ({"role": "user", "content": text},))
        replied = LLMReplied(0.0, "main", 1, 100, 1, 1, None, None, "", ())
        return record(events=(asked, replied, DifficultyRaised(0.0, "main", "HIGH", tokens)))

    frames = '  File "a.py", line 1, in b\n    c()\n'
    size = len(json.dumps(frames)) - 2
    here, there = run("", sent=1_000, tokens=275), run(frames, sent=1_000 + size, tokens=(1_100 + size) // 4)

    assert compared(here, there) == ()
    assert [
        one.field for one in compared(run("", sent=1_000, tokens=276), run("", sent=1_000, tokens=275))
    ] == ["trace"]


def test_a_process_that_dbzero_ends_has_to_die_where_the_job_is_stopped_here() -> None:
    why = "Contained: dbzero ends STATEK's process here, with every job in it: `own`: it contains itself"
    begun = StepStarted(0.0, "main", 1)
    ours = record(events=(begun, StepStarted(0.3, "main", 2), JobStopped(0.3, "main", "contained", why)))
    died = Lost("its process died with SIGSEGV", events=(begun,))

    assert compared(ours, installed_record(ONE, "1.4", died, seed=0)) == ()
    assert compared(ours, record(events=(begun, StepStarted(0.3, "main", 2)))) == (
        Difference("ending", "Dies", "goes on"),
    )


@pytest.mark.parametrize(
    ("error", "same"), [("EXECUTION", True), (None, False)], ids=["an error without sense", "an answer"]
)
def test_what_dbzero_takes_for_a_list_of_its_own_ends_the_process_or_is_an_error(
    error: str | None, same: bool
) -> None:
    why = "Contained: dbzero ends STATEK's process here: a list was the left operand of + with a stored list"
    begun = StepStarted(0.0, "main", 1)
    remark = StoreRemark(0.0, "main", "code", "kills", "rows", None)
    ours = record(events=(begun, remark, JobStopped(0.0, "main", "contained", why)))
    answered = record(events=(begun, ConsoleLine(0.0, "main", 0, "RuntimeError: read-only", error)))
    died = Lost("its process died with SIGSEGV", events=(begun,))

    assert compared(ours, installed_record(ONE, "1.4", died, seed=0)) == ()
    assert (compared(ours, answered) == ()) is same


def test_a_trace_that_ends_too_early_differs_where_it_ends() -> None:
    begun = StepStarted(0.0, "main", 1)

    (found,) = compared(record(events=(begun,)), record())

    assert found.installed == {"position": 0, "event": None}


def test_the_first_differing_field_is_shown_with_both_values() -> None:
    row = Row(scenario="one", verdict=Verdict.DIFFERS, differences=(TURNS, LEDGER))

    assert list(matrix_lines([matrix(row)])) == [
        "one on 1.4.2: differs in jobs.main.turns",
        "    reference: 1",
        "    installed: 2",
        "    also: ledger",
        "statek 1.4.2 (profile 1.4, Python 3.11.7): 1 scenarios: 0 agree, 1 differs",
    ]


def test_verdicts_are_counted() -> None:
    rows = (
        Row(scenario="one", verdict=Verdict.AGREE),
        Row(scenario="two", verdict=Verdict.DIFFERS, differences=(LEDGER,)),
    )

    assert comparison_json(None, [matrix(*rows)]) == {
        "schema": "statek-sim/compare@1",
        "upgrade": None,
        "versions": {
            "1.4.2": {
                "scenarios": 2,
                "agree": 1,
                "varies": 0,
                "differ": 1,
                "verdicts": {"one": "agree", "two": "differs"},
            }
        },
    }


STOPPED = (
    StepStarted(0.0, "main", 1),
    CodeExecuted(0.0, "main", "code", "while True: pass", "contained"),
    ConsoleLine(0.0, "main", 0, "Job main was stopped: too many", "EXECUTION"),
    StatusChanged(0.0, "main", "STARTED", "DONE"),
    JobStopped(
        0.0, "main", "contained", "Contained: the code ran more than 5,000 loop iterations in one step"
    ),
)


def lost(kind: str, *events: Event) -> RunRecord:
    return installed_record(ONE, "1.4", Lost("killed", events, kind), seed=0)


def test_code_that_is_stopped_here_and_never_ends_there_agrees() -> None:
    assert compared(record(events=STOPPED), lost("NeverEnds", STOPPED[0])) == ()


def test_code_that_is_stopped_here_and_ends_otherwise_there_differs() -> None:
    assert compared(record(events=STOPPED), lost("OutOfMemory", STOPPED[0])) == (
        Difference("ending", "NeverEnds", "OutOfMemory"),
    )
    assert compared(record(events=STOPPED), record(events=STOPPED[:1])) == (
        Difference("ending", "NeverEnds", "goes on"),
    )


def test_before_the_stop_both_do_the_same_or_differ() -> None:
    found = compared(record(events=STOPPED), lost("NeverEnds", StepStarted(0.0, "main", 2)))

    assert [difference.field for difference in found] == ["trace"]


def test_what_never_ends_there_but_is_not_stopped_here_differs() -> None:
    assert compared(record(events=STOPPED[:1]), lost("NeverEnds", STOPPED[0])) == (
        Difference("error", None, "killed"),
    )


REPEATED = (
    StepStarted(0.0, "main", 1),
    CodeExecuted(0.0, "main", "code", "raise BaseException", "contained"),
)


def test_a_step_that_its_worker_repeats_agrees_with_code_that_is_stopped_here() -> None:
    detail = "Contained: model-written code raised BaseException: . STATEK would run the same reply again"
    ours = record(events=(*REPEATED, JobStopped(0.0, "main", "contained", detail)))

    assert compared(ours, record(events=(*REPEATED, StepStarted(0.0, "main", 2)))) == ()
    assert compared(ours, record(events=REPEATED)) == (Difference("ending", "Repeats", "goes on"),)


def test_what_the_reference_runtime_refuses_to_reproduce_may_end_in_any_way() -> None:
    detail = "Contained: the reference runtime does not reproduce what dbzero does here: `a`: a set"
    ours = record(events=(*REPEATED, JobStopped(0.0, "main", "contained", detail)))

    assert compared(ours, record(events=(*REPEATED, StepStarted(0.0, "main", 2)))) == ()
    assert compared(ours, record(events=REPEATED)) == ()
    assert [one.field for one in compared(ours, record(events=()))] == ["trace"]


class Asked:
    """Stands in for interpreters with STATEK: each has the next outcome of `outcomes`, for everything it is asked."""

    outcomes: ClassVar[list[Lost]] = []
    version, python_version = "1.2.7", "3.11.7"

    def __init__(self, python: str) -> None:
        self.interpreter = python
        self._outcome = self.outcomes.pop(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """It has nothing to close."""

    def run(self, scenario: Scenario, profile: str) -> Lost:
        """Return what this interpreter does with every scenario."""
        return self._outcome


CONTAINMENT: Final = builtin_suites() / "exceptions" / "containment.yaml"
(ENDLESS,) = (one for one in load_or_fail([CONTAINMENT]) if one.id == "contained-endless-loop")
RAN_HERE: Final = run_scenario(ENDLESS, "1.2")
STOPPED_HERE: Final = ending(RAN_HERE)
assert STOPPED_HERE is not None
HANGS: Final = Lost("killed after 60 s", tuple(RAN_HERE.events[: STOPPED_HERE.position]), kind="NeverEnds")
DIES: Final = Lost("its process died with SIGSEGV")


@pytest.mark.parametrize(
    ("further", "verdict"),
    [
        ([HANGS, HANGS], Verdict.VARIES),
        ([DIES], Verdict.DIFFERS),
        ([HANGS, DIES], Verdict.DIFFERS),
    ],
    ids=["by chance", "each time", "every other time"],
)
def test_what_differs_is_asked_again_in_processes_of_its_own(
    monkeypatch: pytest.MonkeyPatch, further: list[Lost], verdict: Verdict
) -> None:
    monkeypatch.setattr(matrices, "Peer", Asked)
    monkeypatch.setattr(Asked, "outcomes", [DIES, *further])

    (found,) = run_matrix(["python"], [ENDLESS])

    assert [row.verdict for row in found.rows] == [verdict]
    assert found.failed is (verdict is Verdict.DIFFERS)
    assert Asked.outcomes == []
    told = {
        Verdict.VARIES: "differed once, then agreed in 2 new processes; the difference was in",
        Verdict.DIFFERS: "differs in",
    }
    assert next(matrix_lines([found])) == f"{ENDLESS.id} on 1.2.7: {told[verdict]} ending"


def test_many_that_differ_do_not_differ_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "Peer", Asked)
    monkeypatch.setattr(Asked, "outcomes", [DIES])

    (found,) = run_matrix(["python"], [ENDLESS] * (MOST_BY_CHANCE + 1))

    assert found.count(Verdict.DIFFERS) == MOST_BY_CHANCE + 1
