"""Comparing a run with what its scenario expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.backends.record import RunRecord
from statek_sim.suite.result import ABSENT, Mismatch, Outcome
from statek_sim.suite.run import run_one
from tests.tables import table_test
from tests.unit.suite_samples import claims, load

STOP = "Maximum consecutive exceptions exceeded: 2/1"
CLAIM = '(QueueOwner(id="worker-1"),WorkItem(id="invoice-1",status="CLAIMED"))'
HOLDS = [
    "{llm_calls: 5, idle: false, claims_leaked: 0, error: null}",
    "{jobs: {main: {status: DONE, stop: max_consecutive_exceptions, turns: 5, exceptions: 2, streak: 2, steps: 5}}}",
    f"{{jobs: {{main: {{exit: 'Error: {STOP}', error: '{STOP}', definition_errors: [], completions: null}}}}}}",
    "{jobs: {main: {console: {contains: ['no more', undefined], excludes: [hello], lines: 5}}}}",
    "{jobs: {main: {locals: {n: 1, owner: 'QueueOwner(id=\"worker-1\")'}, absent_locals: [undefined]}}}",
    "{jobs: {main: {history: {roles: [system, user, assistant, user, assistant, tool, assistant, user, "
    "assistant, user], contains: [You work., hello], excludes: [never]}}}}",
    "{jobs: {main: {tool_log: [[hello]], tool_calls: [{name: echo, via: call}, {name: fetch_next_item}]}}}",
    f"{{jobs: {{main: {{handlers: [{{name: _mark_item_error, error: '{STOP}'}}], delivered: [], subtasks: {{}}}}}}}}",
    f"{{handlers: [{{name: _mark_item_error, job: main, context: '{CLAIM}'}}]}}",
    f"{{world: {{items: {{invoice-1: {{status: ERROR, owner: worker-1, error: '{STOP}'}}}}}}}}",
    "{world: {items: {invoice-2: {status: READY, owner: null, error: null}}}}",
    "{usage: {tokenizer: o200k_base, reported_tokens: null}, jobs: {main: {usage: {tokenizer: o200k_base}}}}",
    "{events: {contains: [{event: HandlerRegistered}, {event: JobStopped, job: main}], excludes: [{event: Waiting}]}}",
]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return claims(tmp_path_factory.mktemp("run")).record


@table_test("expect", HOLDS)
def test_an_expectation_that_holds_is_no_mismatch(tmp_path: Path, expect: str) -> None:
    result = claims(tmp_path, expect)
    assert result.mismatches == ()
    assert result.outcome is Outcome.PASSED


@table_test(
    ("expect", "mismatch"),
    [
        ("{llm_calls: 4}", Mismatch(("llm_calls",), 4, 5)),
        ("{idle: true}", Mismatch(("idle",), True, False)),
        ("{claims_leaked: 1}", Mismatch(("claims_leaked",), 1, 0)),
        (
            "{jobs: {main: {stop: null}}}",
            Mismatch(("jobs", "main", "stop"), None, "max_consecutive_exceptions"),
        ),
        ("{jobs: {main: {exit: null}}}", Mismatch(("jobs", "main", "exit"), None, f"Error: {STOP}")),
        ("{jobs: {main: {locals: {n: 1.0}}}}", Mismatch(("jobs", "main", "locals", "n"), 1.0, 1)),
        ("{jobs: {main: {locals: {n: true}}}}", Mismatch(("jobs", "main", "locals", "n"), True, 1)),
        ("{jobs: {main: {locals: {m: null}}}}", Mismatch(("jobs", "main", "locals", "m"), None, ABSENT)),
        ("{jobs: {main: {absent_locals: [m, n]}}}", Mismatch(("jobs", "main", "absent_locals", 1), "n", 1)),
        (
            "{jobs: {main: {subtasks: {a: ERROR}}}}",
            Mismatch(("jobs", "main", "subtasks", "a"), "ERROR", ABSENT),
        ),
        ("{jobs: {main: {console: {lines: 2}}}}", Mismatch(("jobs", "main", "console", "lines"), 2, 5)),
        (
            "{jobs: {main: {tool_log: [[null]]}}}",
            Mismatch(("jobs", "main", "tool_log"), [[None]], [["hello"]]),
        ),
        ("{jobs: {job-1: {turns: 1}}}", Mismatch(("jobs", "job-1"), {"turns": 1}, ABSENT)),
        (
            "{world: {items: {invoice-1: {status: DONE}}}}",
            Mismatch(("world", "items", "invoice-1", "status"), "DONE", "ERROR"),
        ),
        ("{usage: {tokenizer: none}}", Mismatch(("usage", "tokenizer"), "none", "o200k_base")),
        ("{error: {type: ScriptExhausted}}", Mismatch(("error",), {"type": "ScriptExhausted"}, ABSENT)),
    ],
)
def test_a_mismatch_says_where_and_both_values(tmp_path: Path, expect: str, mismatch: Mismatch) -> None:
    result = claims(tmp_path, expect)
    assert result.mismatches == (mismatch,)
    assert type(result.mismatches[0].actual) is type(mismatch.actual)
    assert result.outcome is Outcome.FAILED


def test_a_digest_is_compared_as_a_whole(tmp_path: Path, record: RunRecord) -> None:
    assert claims(tmp_path, f'{{digest: "{record.digest}"}}').mismatches == ()
    wrong = "0" * 64
    expected = (Mismatch(("digest",), wrong, record.digest),)
    assert claims(tmp_path, f'{{digest: "{wrong}"}}').mismatches == expected


def test_a_console_is_compared_as_a_whole_list(tmp_path: Path) -> None:
    (mismatch,) = claims(tmp_path, "{jobs: {main: {console: ['0', '2']}}}").mismatches
    assert mismatch.keypath == ("jobs", "main", "console")
    assert mismatch.expected == ["0", "2"]
    assert isinstance(mismatch.actual, list)
    assert mismatch.actual[:3] == ["0", "1", "ValueError: no more"]


def test_each_condition_that_fails_is_a_mismatch_of_its_own(tmp_path: Path) -> None:
    expect = "{jobs: {main: {console: {contains: [a, '0', zzz], excludes: [Value, hello]}}}}"
    found = claims(tmp_path, expect).mismatches
    assert [mismatch.keypath[3:] for mismatch in found] == [("contains", 2), ("excludes", 0)]
    assert found[1].actual == ["ValueError: no more"]


def test_history_conditions_look_at_contents_only(tmp_path: Path) -> None:
    found = claims(
        tmp_path, "{jobs: {main: {history: {contains: [call-2-1], excludes: [go on]}}}}"
    ).mismatches
    assert [mismatch.keypath[3:] for mismatch in found] == [("contains", 0), ("excludes", 0)]


def test_of_a_list_of_mappings_only_said_keys_are_compared_and_shown(tmp_path: Path) -> None:
    (mismatch,) = claims(tmp_path, "{jobs: {main: {handlers: [{name: _release_item}]}}}").mismatches
    assert mismatch.expected == [{"name": "_release_item"}]
    assert mismatch.actual == [{"name": "_mark_item_error"}]


def test_entries_beyond_the_expected_show_the_keys_that_others_give(tmp_path: Path) -> None:
    (mismatch,) = claims(tmp_path, "{jobs: {main: {tool_calls: [{name: echo}]}}}").mismatches
    assert mismatch.actual == [{"name": "echo"}, {"name": "fetch_next_item"}]


def test_entries_where_none_is_expected_show_everything(tmp_path: Path) -> None:
    (mismatch,) = claims(tmp_path, "{jobs: {main: {handlers: []}}}").mismatches
    assert mismatch.expected == []
    assert mismatch.actual == [{"name": "_mark_item_error", "context": CLAIM, "error": STOP}]


def test_a_key_that_an_entry_does_not_have_is_a_mismatch(tmp_path: Path) -> None:
    expect = "{jobs: {main: {tool_calls: [{name: echo, error: null}, {name: fetch_next_item}]}}}"
    (mismatch,) = claims(tmp_path, expect).mismatches
    assert mismatch.actual == [{"name": "echo"}, {"name": "fetch_next_item"}]


def test_a_shorter_history_list_is_a_mismatch(tmp_path: Path) -> None:
    (mismatch,) = claims(tmp_path, "{jobs: {main: {history: [{role: system}]}}}").mismatches
    assert isinstance(mismatch.actual, list)
    assert mismatch.actual[:2] == [{"role": "system"}, {"role": "user"}]
    assert len(mismatch.actual) == 10


def test_mismatches_come_in_the_order_of_the_format(tmp_path: Path) -> None:
    expect = (
        "{usage: {tokenizer: none}, claims_leaked: 3, jobs: {main: {turns: 1, stop: exit}}, llm_calls: 1}"
    )
    found = [mismatch.keypath for mismatch in claims(tmp_path, expect).mismatches]
    assert found == [
        ("llm_calls",),
        ("jobs", "main", "stop"),
        ("jobs", "main", "turns"),
        ("claims_leaked",),
        ("usage", "tokenizer"),
    ]


SHORT = """\
  - id: short
    title: The script is too short
    agents: {worker: {}}
    script: {worker: [{code: print(1)}]}
"""


def run_short(folder: Path, expect: str) -> tuple[Mismatch, ...]:
    (scenario,) = load(folder, f"{SHORT}    expect: {expect}\n")
    return run_one(scenario, "docs").mismatches


@pytest.mark.parametrize("expect", ["{}", "{llm_calls: 9, jobs: {main: {status: DONE}}}", "{error: null}"])
def test_a_run_that_fails_unexpectedly_is_the_only_mismatch(tmp_path: Path, expect: str) -> None:
    (mismatch,) = run_short(tmp_path, expect)
    assert mismatch.keypath == ("error",)
    assert mismatch.expected is None
    assert str(mismatch.actual).startswith("ScriptExhausted: job 'main' (agent 'worker', turn 2, attempt 1)")


def test_a_run_that_fails_as_expected_is_compared_on(tmp_path: Path) -> None:
    expect = (
        "{error: {type: ScriptExhausted, contains: one more reply}, llm_calls: 2, jobs: {main: {turns: 5}}}"
    )
    assert run_short(tmp_path, expect) == (Mismatch(("jobs", "main", "turns"), 5, 1),)


@pytest.mark.parametrize("error", ["{type: UnusedReplies}", "{contains: no such words}"])
def test_a_run_that_fails_otherwise_than_expected_is_the_only_mismatch(tmp_path: Path, error: str) -> None:
    (mismatch,) = run_short(tmp_path, f"{{error: {error}, llm_calls: 9}}")
    assert mismatch.keypath == ("error",)
