"""A run's details: its jobs, lanes, spans and transcript, in the order of the trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from statek_sim.reporting.page.data import embedded
from statek_sim.reporting.page.details import details_of
from statek_sim.values import JSON
from tests.tables import table_test
from tests.unit.page_samples import check_details, seqs, told
from tests.unit.reporting_samples import Talk, result, said
from tests.unit.usage_samples import dialog, played

CLAIM = "owner, item = fetch_next_item(owner)"


def details(text: dict[str, JSON], **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = details_of(played(text, **options))
    check_details(found)
    return found


def code(*replies: str, **more: JSON) -> dict[str, JSON]:
    """Return the text of a scenario in which a job runs these replies as code."""
    tools: JSON = ["fetch_next_item", "claim_without_cleanup", "wait_for", "echo"]
    return {
        "agents": {"clerk": {"tools": tools}},
        "world": {"queue": {"items": ["item-1"]}, "futures": ["approval"]},
        "jobs": {"main": {"locals": {"owner": {"$world": "owner"}}}},
        "script": {"clerk": [{"code": reply} for reply in replies]},
        **more,
    }


def test_a_wait_is_a_span_of_virtual_time_from_entry_to_entry() -> None:
    resolve: list[JSON] = [{"at": 30.0, "resolve": "approval", "value": "yes"}]
    found = details(code("answer = wait_for('approval')\nprint(answer)\nexit()", events=resolve))
    (wait,) = [span for span in found["spans"] if span["kind"] == "wait"]
    assert wait["to"] - wait["from"] == 30.0
    *_, waits, ready = [entry for entry in found["transcript"] if entry["kind"] == "job"]
    assert (waits["seq"], ready["seq"]) == (wait["from_seq"], wait["to_seq"])
    assert waits["text"].startswith("waits in ")
    assert {"kind": "console", "text": "yes"}.items() <= found["transcript"][-2].items()


def test_a_claim_ends_where_the_handler_gives_it_up() -> None:
    found = details(code(f"{CLAIM}\nraise ValueError('no')", "1/0", "1/0"))
    assert [kind for kind, _ in told(found, "world", "handler", "stopped")] == [
        *("world", "handler", "stopped", "world", "handler")
    ]
    (claim,) = [span for span in found["spans"] if span["kind"] == "claim"]
    assert claim["label"] == "item-1 by worker-1"
    _, released = [entry for entry in found["transcript"] if entry["kind"] == "world"]
    assert claim["to_seq"] == released["seq"]
    assert [item["status"] for item in found["items"]] == ["ERROR"]


def test_a_claim_that_nobody_gives_up_stays_open() -> None:
    found = details(code("claim_without_cleanup(owner)\n1/0", "1/0"))
    (claim,) = [span for span in found["spans"] if span["kind"] == "claim"]
    assert (claim["to"], claim["to_seq"]) == (None, None)
    assert found["leaked_claims"] == ["item-1"]


def test_spans_and_transcript_come_in_the_order_of_the_trace() -> None:
    found = details(code(CLAIM, "print(echo('a'))", "exit('done')"))
    assert seqs(found["transcript"]) == sorted(seqs(found["transcript"]))
    starts = [span["from_seq"] for span in found["spans"]]
    assert starts == sorted(starts)
    assert {entry["at"] for entry in found["transcript"]} == {0.0}


def test_a_lane_ends_when_its_job_stopped_for_the_last_time() -> None:
    pushes: list[JSON] = [{"at": 5.0, "push": "main", "message": "again"}]
    found = details({**dialog({"text": "one"}, {"text": "two", "latency": 2.0}), "events": pushes})
    (lane,) = found["lanes"]
    assert (lane["job"], lane["from"], lane["to"]) == ("main", 0.0, 7.0)
    assert told(found, "user", "stopped") == [
        ("user", "Good morning"),
        ("stopped", "final"),
        ("user", "again"),
        ("stopped", "final"),
    ]


def test_the_result_of_an_agent_is_its_answer() -> None:
    (job,) = details(
        {
            "engine": "agent",
            "profiles": ["hardened"],
            "agents": {"worker": {}},
            "jobs": {"main": {"message": "Where?"}},
            "script": {"worker": [{"text": "Oslo."}]},
        },
        profile="hardened",
    )["jobs"]
    assert job["exit"] == '"Oslo."'


def test_a_job_tells_its_limits_calls_history_and_exit() -> None:
    (job,) = details(code("exit({'n': [1, None]})", agents={"clerk": {"prompt": "You work."}}))["jobs"]
    assert job["exit"] == '{"n": [1, null]}'
    assert job["limits"]["max_turns"] == 5
    assert len(job["calls"]) == len(job["limit_line"]) == 1
    assert job["history"][0] == {"role": "system", "text": "You work.", "more": None}
    steps = job["waterfall"]
    assert steps["from"] + sum(step["tokens"] for step in steps["steps"]) == steps["to"]
    assert (steps["from"], steps["to"]) == (
        job["calls"][0]["approx_total"],
        job["calls"][0]["measured_total"],
    )


def test_tool_calls_in_the_history_are_shown_as_json() -> None:
    call: JSON = {"tools": [{"name": "echo", "args": {"value": "a"}}]}
    (job,) = details(dialog(call, {"text": "done"}, tools=["echo"], tools_scope="ALL"))["jobs"]
    assert any(message["more"] and '"echo"' in message["more"] for message in job["history"])


def test_a_failing_provider_and_wrong_code_are_marked_as_wrong() -> None:
    found = details(
        code("1/0", "exit()", script={"clerk": [{"http": 500}, {"code": "1/0"}, {"code": "exit()"}]})
    )
    assert [kind for kind, _ in told(found, "provider")] == ["provider"]
    assert [entry["kind"] for entry in found["transcript"] if entry["error"]] == ["provider", "console"]


@table_test("text", ["</script><script>alert(1)</script>", "\ud800", "\x00", "\u202e", "好" * 50])
def test_any_text_of_an_agent_reaches_the_page_as_it_was(text: str) -> None:
    found = details(code(f"print({text!r})", "exit()"))
    assert text in [entry["text"] for entry in found["transcript"]]
    assert embedded(found)


def test_a_console_line_of_a_megabyte_is_cut_and_says_so() -> None:
    talk = Talk().turn(said("user", "a" * 1_000_000))
    found: dict[str, Any] = details_of(result("suite/long", talk))
    check_details(found)
    assert len(embedded(found)) < 100_000
    assert "980,000 more characters omitted" in found["transcript"][0]["text"]


def test_a_value_that_json_does_not_have_is_told_as_text() -> None:
    (job,) = details(code("exit(float('nan'))"))["jobs"]
    assert job["exit"] == '"nan"'


def test_a_job_of_another_backend_has_its_curve_but_no_waterfall() -> None:
    scenario = result("suite/one", Talk().turn(said("user", "hello")))
    elsewhere = replace(scenario, record=replace(scenario.record, backend="installed", calls=()))
    found: dict[str, Any] = details_of(elsewhere)
    check_details(found)
    (job,) = found["jobs"]
    assert len(job["calls"]) == 1
    assert job["waterfall"] is None


def test_the_failure_of_a_run_is_told() -> None:
    found = details_of(played({"script": {"clerk": []}}), failure="jobs.main.turns: expected 1")
    check_details(found)
    assert found["failure"] == "jobs.main.turns: expected 1"
    assert str(found["error"]).startswith("ScriptExhausted: ")
