"""The metrics of document 002, section 7: their formulas, bands over time, and the ways in and out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim import trace as events
from statek_sim.agent.approvals import tool_that_asks
from statek_sim.agent.checkpoints.sessions import Keeper, SessionStore
from statek_sim.agent.effects import PASS, GuardPoint, Parts, PersonSaid, Subject, Verdict
from statek_sim.agent.escalation import Ladder, Level
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.reliability import loop_watcher
from statek_sim.agent.step_enforcement import Step
from statek_sim.cli import main
from statek_sim.errors import BadInput
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, fault, text, tool_call
from statek_sim.providers.scripted import FunctionLLM, ScriptedLLM
from statek_sim.store.database import Sqlite
from statek_sim.store.sql import SqlStore
from statek_sim.telemetry.facts import TaskFacts, task_facts
from statek_sim.telemetry.files import groups_of, tasks_of_file
from statek_sim.telemetry.measures import METRICS, MetricName, measure, nearest_rank
from statek_sim.telemetry.report import Bands, Status, judged, metrics_json, metrics_report
from tests.says import line_with, says
from tests.tables import table_test


def look(place: str) -> str:
    """Look at a place."""
    if place == "nowhere":
        raise OSError("there is no such place")
    return f"{place} is fine"


def facts(*script: Reply, task: str = "Work.", **made: Any) -> TaskFacts:
    agent = AgentHarness(ScriptedLLM(list(script)), tools=[look], **made)
    agent.run(task)
    (one,) = task_facts(agent.trace.events, cost=lambda model, prompt, completion: Decimal("0.5"))
    return one


def task(**changes: Any) -> TaskFacts:
    usual: dict[str, Any] = {
        "run": "r", "group": "g", "job": "main", "ended": 0.0, "outcome": "completed", "stop": "final", "steps": 4,
        "calls": 3, "failed_calls": 0, "loops": 0, "tokens": 100, "subtasks": 1, "cost": Decimal("0.01"),
        "escalations": 0, "restores": 0, "blocks": 0, "step_seconds": (1.0,), "person_seconds": (0.0,),
    }  # fmt: skip
    return TaskFacts(**{**usual, **changes})


FAILED: dict[str, Any] = {"outcome": "failed", "stop": "crash", "subtasks": 0}


def status(name: MetricName, *windows: Sequence[TaskFacts], **judging: Any) -> Status:
    size = len(windows[0])
    return (
        judged([one for window in windows for one in window], size=size, **judging)[-1].findings[name].status
    )


# -- what a trace tells ----------------------------------------------------------------------------------------


def test_a_trace_tells_steps_calls_tokens_and_cost_of_its_task() -> None:
    one = facts(tool_call("look", place="a"), tool_call("look", place="nowhere"), text("done"))
    assert (one.outcome, one.steps, one.calls, one.failed_calls, one.subtasks) == ("completed", 3, 2, 1, 1)
    assert one.cost == Decimal("1.5")
    assert one.tokens is not None
    assert one.tokens > 0


def test_a_step_of_the_workflow_is_a_subtask() -> None:
    def save() -> str:
        """Save."""
        return "saved"

    agent = AgentHarness(
        ScriptedLLM([tool_call("look", place="a"), tool_call("save"), text("done")]),
        tools=[look, save],
        steps=[Step(tool="look"), Step(tool="save")],
    )
    agent.run("Work.")
    (one,) = task_facts(agent.trace.events)
    assert (one.subtasks, one.cost) == (2, None)


def test_a_loop_a_block_and_a_failure_are_counted() -> None:
    def rude(subject: Subject) -> Verdict:
        return Verdict(action="block", reason="rude") if subject.point is GuardPoint.INPUT else PASS

    blocked = facts(parts=Parts(guards=[rude]))
    assert (blocked.outcome, blocked.stop, blocked.blocks) == ("failed", "blocked", 1)
    again = [tool_call("look", place="a")] * 3
    assert facts(*again, text("done"), parts=Parts(watchers=[loop_watcher()])).loops == 1
    assert facts(fault(400)).stop == "crash"


def test_what_a_person_took_is_told_apart_from_the_step() -> None:
    from statek_sim.agent.effects import Delayed

    agent = AgentHarness(
        ScriptedLLM([tool_call("ask_person", question="Why?").after(2), text("done")]),
        tools=[tool_that_asks()],
        person=lambda question: Delayed(30, value=PersonSaid("answered", "so")),
    )
    agent.run("Work.")
    (one,) = task_facts(agent.trace.events)
    assert (one.step_seconds, one.person_seconds) == ((32.0, 0.0), (30.0, 0.0))
    assert measure([one]).metrics["step_latency_p95"].value == 2.0


def test_a_run_that_another_process_takes_up_is_a_restore_in_that_process_own_trace(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def process(model: FunctionLLM) -> list[TaskFacts]:
        agent = AgentHarness(model)
        store = SessionStore(SqlStore(Sqlite(tmp_path / "sessions.db"), clock=lambda: 0.0))
        with contextlib.suppress(Killed):
            agent.run("Work.", keeper=Keeper(store, "s", worker="w", plan=agent.plan("Work.")))
        store.close()
        return task_facts(agent.trace.events)

    def dies(request: ChatRequest) -> Reply:
        raise Killed

    def works(request: ChatRequest) -> Reply:
        return text("done")

    assert [(one.outcome, one.restores) for one in process(FunctionLLM(dies))] == [("open", 0)]
    assert [(one.outcome, one.restores) for one in process(FunctionLLM(works))] == [("completed", 1)]
    assert process(FunctionLLM(works)) == []


def test_every_message_is_a_task_and_one_that_is_not_over_is_open() -> None:
    agent = AgentHarness(ScriptedLLM([text("one"), text("two")]))
    agent.run("First.", then={5.0: "Second."})
    found = task_facts(agent.trace.events)
    assert [(one.outcome, one.steps) for one in found] == [("completed", 1), ("completed", 1)]
    cut = [event for event in agent.trace.events if not isinstance(event, events.JobStopped)][:6]
    assert [one.outcome for one in task_facts(cut)] == ["open"]


def test_a_step_up_a_ladder_is_an_escalation_and_the_step_to_nobody_is_none() -> None:
    levels = (Level(name="fast", model="small"), Level(name="strong", model="large"))
    ladder = Ladder(levels=levels, checks=[lambda task, answer: "GOOD" in answer])
    assert facts(text("bad"), text("GOOD"), parts=Parts(ladder=ladder)).escalations == 1
    unsolved = facts(text("bad"), parts=Parts(ladder=replace(ladder, levels=levels[:1])))
    assert (unsolved.escalations, unsolved.stop, unsolved.outcome) == (0, "unsolved", "failed")


# -- formulas --------------------------------------------------------------------------------------------------


def test_the_formulas() -> None:
    tasks = [
        task(),
        task(steps=8, tokens=300, cost=Decimal("0.03"), subtasks=3, failed_calls=1, escalations=2),
        task(
            **FAILED, steps=12, tokens=600, cost=Decimal("0.05"), calls=4, failed_calls=4, blocks=1, loops=2
        ),
    ]
    found = {name: one.value for name, one in measure(tasks).metrics.items()}
    assert found == {
        "steps_per_task": 8.0,
        "tool_error_rate": 0.5,
        "loop_detections": 2.0,
        "tokens_per_subtask": 250.0,
        "completion_rate": 2 / 3,
        "cost_per_task": pytest.approx(0.03),
        "escalation_rate": 1 / 3,
        "checkpoint_restores": 0.0,
        "guard_blocks_per_task": 1 / 3,
        "step_latency_p95": 1.0,
    }


def test_steps_of_failed_tasks_count() -> None:
    tasks = [task(), task(**FAILED, steps=100)]
    assert measure(tasks).metrics["steps_per_task"].value == 52.0


def test_nothing_of_nothing_is_unknown_and_not_a_healthy_number() -> None:
    tasks = [task(**{**FAILED, "steps": 0, "calls": 0})]
    assert measure(tasks).metrics["tool_error_rate"].value is None
    assert status("tool_error_rate", tasks) is Status.UNKNOWN


def test_what_one_source_does_not_tell_is_unknown() -> None:
    found = measure([task(), task(calls=None, failed_calls=None, cost=None)]).metrics
    assert (found["tool_error_rate"].value, found["cost_per_task"].value) == (None, None)
    assert found["steps_per_task"].value == 4.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.integers(1, 100))
def test_a_nearest_rank_is_the_least_value_that_enough_are_not_above(
    values: list[float], percent: int
) -> None:
    found = nearest_rank(values, percent)
    assert found in values
    assert found is not None
    assert 100 * sum(value <= found for value in values) >= percent * len(values)
    assert 100 * sum(value < found for value in values) < percent * len(values)


# -- bands -----------------------------------------------------------------------------------------------------


@table_test(("failed", "expected"), [(0, "healthy"), (1, "healthy"), (3, "warn"), (8, "alert")])
def test_tool_errors_are_healthy_a_warning_or_an_alert(failed: int, expected: str) -> None:
    assert status("tool_error_rate", [task(calls=40, failed_calls=failed)]) == expected


def test_two_failures_of_fifteen_prove_nothing_yet() -> None:
    tasks = [task(calls=15, failed_calls=2)]
    assert status("tool_error_rate", tasks) is Status.WARN


def test_completion_under_90_percent_is_an_alert_when_enough_tasks_say_so() -> None:
    def some(failed: int, of: int) -> list[TaskFacts]:
        return [task(**FAILED) for _ in range(failed)] + [task() for _ in range(of - failed)]

    assert status("completion_rate", some(0, 20)) is Status.HEALTHY
    assert status("completion_rate", some(2, 20)) is Status.WARN
    assert status("completion_rate", some(4, 20)) is Status.ALERT
    assert status("completion_rate", some(1, 9)) is Status.WARN


def test_each_loop_is_an_alert() -> None:
    assert status("loop_detections", [task(), task(loops=1)]) is Status.ALERT
    assert status("loop_detections", [task(), task()]) is Status.HEALTHY


def test_a_sudden_increase_is_one_over_the_median_of_calm_windows() -> None:
    calm, high, higher = [task(steps=4)], [task(steps=5.5)], [task(steps=7)]
    assert status("steps_per_task", calm, calm, higher) is Status.UNKNOWN
    assert status("steps_per_task", calm, calm, calm, high) is Status.WARN
    assert status("steps_per_task", calm, calm, calm, higher) is Status.ALERT
    assert status("steps_per_task", calm, calm, calm, *[higher] * 6) is Status.ALERT


def test_tokens_that_rise_over_the_last_windows_are_an_alert_through_noise_and_noise_is_none() -> None:
    def statuses(*tokens: int) -> list[Status]:
        windows = judged([task(tokens=one) for one in tokens], size=1)
        return [window.findings["tokens_per_subtask"].status for window in windows]

    assert statuses(100, 104, 99, 120, 116, 130)[-1] is Status.ALERT
    assert statuses(100, 104, 99, 101, 103, 100)[-1] is Status.HEALTHY
    assert statuses(100, 101, 102, 103, 104, 105)[-1] is Status.HEALTHY
    assert statuses(100, 110, 120, 130) == [*[Status.UNKNOWN] * 3, Status.ALERT]
    assert statuses(100, 110, 120, 115)[-1] is Status.WARN


def test_a_task_that_costs_more_than_it_is_worth_is_an_alert() -> None:
    worth = Bands(value_per_task=Decimal("0.012"))
    assert status("cost_per_task", [task()]) is Status.UNKNOWN
    assert status("cost_per_task", [task()], bands=worth) is Status.WARN
    assert status("cost_per_task", [task(cost=Decimal("0.02"))], bands=worth) is Status.ALERT


def test_the_four_further_metrics_raise_no_alert() -> None:
    found = judged([task(escalations=9, restores=9, blocks=9, step_seconds=(900.0,))])[0].findings
    assert {name for name, one in found.items() if one.status is Status.TRACKED} == {
        name for name, metric in METRICS.items() if not metric.alerts
    }


@given(st.integers(0, 95), st.integers(1, 25))
def test_windows_have_every_task_once_and_none_is_less_than_half(count: int, size: int) -> None:
    windows = judged([task() for _ in range(count)], size=size)
    assert sum(window.measured.tasks for window in windows) == count
    places = [place for window in windows for place in range(window.first, window.last + 1)]
    assert places == list(range(1, count + 1))
    assert len(windows) == 1 or all(2 * window.measured.tasks >= size for window in windows)


def test_limits_the_wrong_way_round_are_bad_input() -> None:
    with pytest.raises(BadInput, match=line_with("errors: ", "warning", "beyond", "alert")):
        Bands(errors_warn=0.2)
    with pytest.raises(BadInput, match=r"^expected value_per_task above 0 US dollars, got 0$"):
        Bands(value_per_task=Decimal(0))
    with pytest.raises(BadInput, match=line_with("window", "at least 1 task", "got 0")):
        judged([], size=0)


# -- out -------------------------------------------------------------------------------------------------------


def test_the_json_has_no_number_that_json_has_not() -> None:
    report = metrics_report([task(calls=0, failed_calls=0, subtasks=0)])
    told = metrics_json(report)
    json.dumps(told, allow_nan=False)
    metrics: Any = told["all"]
    assert metrics["metrics"]["tool_error_rate"]["value"] is None


def test_alerts_are_lines_with_their_place() -> None:
    report = metrics_report([task(group="shop", loops=1), replace(task(), group="bank")], size=1)
    assert report.alerts == (
        "shop: Loop Detection Count: 1 detected",
        "tasks 1-1: Loop Detection Count: 1 detected",
    )


# -- in --------------------------------------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    said = capsys.readouterr()
    return exit_.value.code or 0, said.out, said.err


def test_scenarios_and_the_traces_they_print_have_the_same_metrics(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = "".join(
        command(capsys, "trace", id_, "--profile", "hardened")[1]
        for id_ in ("agent-person-answers", "agent-person-refuses")
    )
    (tmp_path / "runs.jsonl").write_text(lines)
    from_file = metrics_report(tasks_of_file(tmp_path / "runs.jsonl"))
    code, out, err = command(
        capsys, "metrics", "scenarios/agent-people", "--select", "agent-person-", "--profile", "hardened",
        "--json", str(tmp_path / "m.json"),
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "Task Completion Rate" in out
    told = json.loads((tmp_path / "m.json").read_text())
    runs = {run["name"]: run["metrics"] for run in told["runs"]}
    ours = metrics_json(from_file)["runs"]
    assert isinstance(ours, list)
    assert [run["metrics"] for run in ours if isinstance(run, dict)] == [
        runs["agent-people/agent-person-answers[hardened]"],
        runs["agent-people/agent-person-refuses[hardened]"],
    ]


def test_traces_of_one_name_in_two_folders_are_different_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = command(capsys, "trace", "agent-person-answers", "--profile", "hardened")[1]
    names = []
    for day in ("mon", "tue"):
        (tmp_path / day).mkdir()
        path = tmp_path / day / "trace.jsonl"
        path.write_text(lines)
        names += [one.run for one in tasks_of_file(path)]
    assert len(set(names)) == len(names)


def test_files_of_one_name_in_two_folders_are_different_groups() -> None:
    mon, tue, other = Path("mon/runs.jsonl"), Path("tue/runs.jsonl"), Path("mon/other.jsonl")
    assert groups_of([mon, tue, other]) == {mon: "mon/runs", tue: "tue/runs", other: "other"}


def test_a_call_of_a_tool_without_a_name_is_read(tmp_path: Path) -> None:
    agent = AgentHarness(ScriptedLLM([tool_call("look", place="a"), text("done")]), tools=[look])
    agent.run("Work.")
    path = tmp_path / "x.jsonl"
    lines = [json.loads(line) for line in agent.trace.lines()]
    path.write_text(
        "\n".join(
            json.dumps(
                {**line, "name": None} if line.get("event") in ("ToolCalled", "ToolReturned") else line
            )
            for line in lines
        )
    )
    assert [one.calls for one in tasks_of_file(path)] == [1]


@pytest.mark.parametrize("name", ["deep.jsonl"])
def test_a_file_that_is_too_deep_is_bad_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("[" * 100_000)
    code, _, err = command(capsys, "metrics", str(tmp_path / name))
    assert (code, err.count("\n")) == (2, 1)
    assert name in err


def test_an_alert_fails_the_command_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    agent = AgentHarness(
        ScriptedLLM([*[tool_call("look", place="a")] * 3, text("done")]),
        tools=[look],
        parts=Parts(watchers=[loop_watcher()]),
    )
    agent.run("Work.")
    path = tmp_path / "looping.jsonl"
    path.write_text("\n".join(agent.trace.lines()))
    assert command(capsys, "metrics", str(path))[0] == 0
    code, out, _ = command(capsys, "metrics", str(path), "--fail-on-alert")
    assert code == 1
    assert "alert: looping: Loop Detection Count: 1 detected\n" in out


RETURNED = '{"event": "ToolReturned", "at": 1.0, "job": "a", "name": "look", "result": "x", "error": null}'


def test_a_call_of_an_earlier_process_counts_in_that_ones_trace(tmp_path: Path) -> None:
    resumed = (
        '{"event": "RunResumed", "at": 0.0, "job": "a", "point": "calling", "iteration": 1, "committed": 0.0}'
    )
    stopped = '{"event": "JobStopped", "at": 2.0, "job": "a", "reason": "final", "detail": null}'
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"trace": 1}}\n{resumed}\n{RETURNED}\n{stopped}\n')
    (task,) = tasks_of_file(path)
    assert (task.calls, task.failed_calls) == (0, 0)
    assert measure([task, replace(task, calls=3)]).metrics["tool_error_rate"].value == 0.0


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("", "a.jsonl: ; empty; expected a trace; `statek-sim trace`"),
        ("{", "a.jsonl:1: ; not a trace line"),
        ("[]", "a.jsonl:1: ; expected a JSON object; got list"),
        ('{"event": "JobStopped"}', "a.jsonl:1: ; expected a trace header"),
        ('{"trace": 1}\n{"event": "Nothing"}', "a.jsonl:2: ; not a trace event: 'Nothing'"),
        (
            '{"trace": 1}\n{"event": "StepStarted", "at": 0.0, "jobs": "a"}',
            "a.jsonl:2: ; StepStarted; 'jobs'",
        ),
        ('{"trace": 1}\n{"event": ["StepStarted"]}', "a.jsonl:2: ; not a trace event"),
        ('{"trace": 1}', "no task; files"),
    ],
)
def test_what_is_no_trace_is_told_with_its_place(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: str,
    facts: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(content)
    code, _, err = command(capsys, "metrics", "a.jsonl")
    assert code == 2
    assert says(err, *facts.split("; "))


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--window", "0"], "--window 0: ; 1 or more"),
        (["--worth", "much"], "--worth 'much': ; dollars above 0"),
        (["--worth", "nan"], "--worth 'nan': ; dollars above 0"),
        (["nowhere.jsonl"], "nowhere.jsonl: ; file or folder"),
        (["run.json"], "run.json: ; scenarios; trace; .jsonl; report"),
    ],
)
def test_what_cannot_be_meant_is_bad_input(
    capsys: pytest.CaptureFixture[str], arguments: list[str], facts: str
) -> None:
    code, _, err = command(capsys, "metrics", *arguments)
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert says(err, *facts.split("; "))


def test_a_metric_that_a_scenario_did_not_expect_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.yaml").write_text(
        "defaults: {engine: agent}\n"
        "scenarios:\n"
        "  - id: one\n"
        "    title: One step is not two.\n"
        "    agents: {a: {prompt: You work.}}\n"
        "    jobs: {main: {message: Work.}}\n"
        "    script: {a: [{text: Done.}]}\n"
        "    expect: {metrics: {steps_per_task: 2, completion_rate: 1}}\n"
    )
    with pytest.raises(SystemExit, match=r"^1$"):
        main(["run", str(tmp_path / "file.yaml"), "--profile", "hardened"])
    told = capsys.readouterr().out
    assert "metrics.steps_per_task: expected 2.0, got 1.0" in told
    assert "metrics.completion_rate" not in told


def test_a_scenario_pays_the_prices_of_its_own_budgets(tmp_path: Path) -> None:
    file = tmp_path / "priced.yaml"
    file.write_text(
        "scenarios:\n"
        "  - id: priced\n"
        "    title: Priced.\n"
        "    engine: agent\n"
        "    agents: {a: {harness: {budget: {prompt_price: 1000000, completion_price: 0}}}}\n"
        "    jobs: {main: {message: Work.}}\n"
        "    script: {a: [{text: Done., usage: {prompt: 3, completion: 2}}]}\n",
        "utf-8",
    )
    written = tmp_path / "metrics.json"
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["metrics", str(file), "--json", str(written)])
    assert json.loads(written.read_text("utf-8"))["all"]["metrics"]["cost_per_task"]["value"] == 3.0
