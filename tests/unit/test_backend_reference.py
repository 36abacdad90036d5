from __future__ import annotations

import pickle
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statek_sim import tool
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.errors import BadInput
from statek_sim.providers.protocol import ChatRequest
from statek_sim.scriptable import measured
from tests.says import line_with
from tests.unit.suite_samples import load

Run = Callable[..., RunRecord]


@tool
def dial(**kwargs: object) -> None:
    """Try a real connection and hide that it failed."""
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)
    except Exception:  # noqa: BLE001, S110  # what careless tools do
        pass


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_text(text: str, profile: str = "docs", **options: Any) -> RunRecord:
        (scenario,) = load(tmp_path, f"  - id: one\n    title: One\n{text}")
        return run_scenario(scenario, profile, **options)

    return run_text


def test_a_record_tells_how_a_job_went(run: Run) -> None:
    record = run("    agents: {worker: {}}\n    script: {worker: [{code: 'x = 1'}, {code: exit(x)}]}\n")
    job = record.jobs["main"]
    assert (job.status, job.stop, job.exit, job.turns, job.llm_calls) == ("DONE", "exit", 1, 2, 2)
    assert (job.locals, job.console) == ({"x": 1}, ("None",))
    assert (record.error, record.settled, record.idle, record.worker) == (None, True, False, None)


def test_the_same_run_has_the_same_digest_and_another_seed_another(run: Run) -> None:
    text = "    agents: {worker: {}}\n    script: {worker: [{code: exit(1)}]}\n"
    assert run(text).digest == run(text).digest
    assert run(text, seed=1).digest != run(text).digest


def test_replies_that_nobody_asked_for_are_the_runs_error(run: Run) -> None:
    record = run("    agents: {worker: {}}\n    script: {worker: [{code: exit(1)}, {code: exit(2)}]}\n")
    assert record.error is not None
    assert record.error.type == "UnusedReplies"
    assert record.jobs["main"].exit == 1


def test_replies_that_the_end_in_time_cut_off_are_explained_by_it(run: Run) -> None:
    record = run(
        "    until: 30\n    agents: {worker: {}}\n"
        "    script: {worker: [{code: x = 1}, {code: exit(2), latency: 60}, {code: exit(3)}]}\n"
    )
    assert record.error is not None
    assert record.error.message.endswith(
        "the run ended at virtual second 30 (`until`) before its work was done"
    )


def test_an_event_after_a_call_that_never_comes_is_the_runs_error(run: Run) -> None:
    record = run(
        "    agents: {worker: {}}\n    script: {worker: [{code: exit(1)}]}\n"
        "    events: [{after: {tool: fetch, call: 2}, crash: worker}]\n"
    )
    assert record.error is not None
    assert (record.error.type, record.error.message) == (
        "UnusedEvents",
        "the event 'crash' follows call 2 of 'fetch', which never happened: correct the tool, call or "
        "job, or remove the event",
    )


def test_a_script_that_ends_early_is_the_runs_error(run: Run) -> None:
    record = run("    agents: {worker: {}}\n    script: {worker: [{code: x = 1}]}\n")
    assert record.error is not None
    assert record.error.type == "ScriptExhausted"
    assert record.jobs["main"].status == "STARTED"


def test_a_connection_that_a_tool_tried_and_hid_is_the_runs_error(run: Run) -> None:
    text = (
        f"    agents: {{worker: {{tools: ['{__name__}:dial']}}}}\n"
        "    script: {worker: [{code: dial()}, {code: exit(1)}]}\n"
    )
    record = run(text)
    assert record.error is not None
    assert record.error.type == "NetworkForbidden"
    assert "192.0.2.1" in record.error.message


def test_a_second_completion_is_refused_as_the_application_would_see_it(run: Run) -> None:
    record = run(
        "    agents: {worker: {tools: [wait_for]}}\n"
        "    world: {futures: [never]}\n"
        "    jobs: {main: {}, child: {parent: main, subtask: t-1}}\n"
        "    events: [{at: 1, complete: t-1, result: a}, {at: 2, complete: t-1, result: b}]\n"
        "    script: {worker: [{code: wait_for('never'), repeat: 2}]}\n"
    )
    assert record.error is not None
    assert (record.error.type, record.error.message) == (
        "RuntimeError",
        "Sub-task handler is already completed",
    )


def test_a_job_that_waits_for_ever_is_idle(run: Run) -> None:
    record = run(
        "    agents: {worker: {tools: [wait_for]}}\n"
        "    world: {futures: [never]}\n"
        "    script: {worker: [{code: wait_for('never')}]}\n"
    )
    assert (record.idle, record.jobs["main"].status) == (True, "SUSPENDED")


def test_a_dead_worker_says_why_and_a_restarted_one_does_not(run: Run) -> None:
    script = "    agents: {worker: {}}\n    script: {worker: [{code: exit(1), latency: 5, repeat: 2}]}\n"
    dead = run(f"{script}    events: [{{at: 1, crash: worker}}]\n")
    assert dead.worker == "killed"
    alive = run(f"{script}    events: [{{at: 1, crash: worker}}, {{at: 2, restart: worker}}]\n")
    assert alive.worker is None


def test_an_unknown_profile_is_bad_input(run: Run) -> None:
    with pytest.raises(BadInput, match=line_with("profile '9'", "docs, 1.2.5, 1.2, 1.4")):
        run("    agents: {worker: {}}\n    script: {worker: [{code: exit(1)}]}\n", "9")


def test_a_clock_tool_reads_virtual_time(run: Run) -> None:
    record = run(
        "    agents: {worker: {tools: [read_clock]}}\n"
        "    script: {worker: [{code: exit(read_clock()), latency: 30}]}\n"
    )
    assert record.jobs["main"].exit == "2026-01-01T09:00:30"


def test_measured_usage_counts_prompt_and_answer() -> None:
    request = ChatRequest(
        job_id="j",
        role="worker",
        turn=1,
        attempt=1,
        at=0.0,
        model="gpt-4o",
        messages=[{"role": "user", "content": "hello"}],
        tools=(),
        temperature=None,
        bytes_sent=0,
    )
    prompt, completion = measured(request, "hello world")
    assert prompt > completion > 0


def test_a_value_that_holds_one_text_many_times_is_told_in_short(run: Run) -> None:
    code = "{worker: [{code: \"x = 'a' * 10**6; y = [x] * 3; z = [x] * 12\"}, {code: exit(1)}]}"
    job = run(f"    agents: {{worker: {{}}}}\n    script: {code}\n").jobs["main"]
    assert job.locals["x"] == "a" * 10**6
    assert job.locals["y"] == ["a" * 10**6] * 3
    assert job.locals["z"] == "<list: too large to show>"


@pytest.mark.parametrize(
    ("item", "shown"),
    [("lambda: 1", "function()"), ("(n for n in [])", "<Object>"), ("print", "function()"), ("7", "7")],
)
def test_a_work_item_may_have_any_name(run: Run, item: str, shown: str) -> None:
    record = run(
        "    agents: {worker: {tools: [add_item]}}\n    world: {queue: {items: []}}\n"
        f"    script: {{worker: [{{code: 'add_item({item})'}}, {{code: exit(1)}}]}}\n"
    )
    assert list(record.items) == [shown]
    assert pickle.loads(pickle.dumps(record.items)) == record.items


def test_a_wait_of_nan_seconds_is_an_error_of_the_tool(run: Run) -> None:
    record = run(
        "    agents: {worker: {tools: [slow_echo]}}\n"
        '    script: {worker: [{code: \'slow_echo("a", float("nan"))\'}, {code: exit(1)}]}\n'
    )
    assert record.error is None
    assert "ValueError: Invalid delay: NaN (not a number)" in "".join(record.jobs["main"].console) + str(
        record.jobs["main"].history
    )
