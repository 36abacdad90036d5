"""`report.json` is what its schema says, byte for byte the same for equal runs."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest

from statek_sim.reporting.artifact import json_text, schema_named
from statek_sim.reporting.model import Report, build_report, report_json
from statek_sim.suite.result import Mismatch
from statek_sim.values import JSON
from tests.unit.reporting_samples import Talk, english, result, said


def _report(*, seed: int | None = None, exit_value: JSON = "done") -> Report:
    results = [
        result("usage/english", english(2), exit_value=exit_value),
        result("usage/english", english(2), profile="1.4"),
        result("claims/two", Talk("first").turn(said("user", "go")), Talk("second")),
        result("claims/wrong", mismatches=[Mismatch(("idle",), True, False)]),
    ]
    return build_report(results, preset="batch", seed=seed)


def _validate(report: object) -> None:
    schema: Any = schema_named("report")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema, cls=jsonschema.Draft202012Validator)


def test_a_report_is_valid_under_its_schema() -> None:
    _validate(report_json(_report()))
    _validate(report_json(_report(seed=7)))
    empty = report_json(build_report([], preset=None, seed=None))
    _validate(empty)
    assert (empty["preset"], empty["seed"]) == ("as written", None)


def test_the_schema_allows_nothing_else() -> None:
    report = report_json(_report())
    with pytest.raises(jsonschema.ValidationError, match="'seconds' was unexpected"):
        _validate({**report, "seconds": 1.0})
    del report["digest"]
    with pytest.raises(jsonschema.ValidationError, match="'digest' is a required property"):
        _validate(report)


def test_the_head_tells_what_was_run_and_how_it_ended() -> None:
    report = _report(seed=7)
    head = report_json(report)
    assert [name for name in head if name != "scenarios"] == [
        "schema",
        "profile",
        "preset",
        "seed",
        "digest",
        "summary",
    ]
    assert (head["schema"], head["profile"], head["preset"]) == ("statek-sim/report@1", "docs,1.4", "batch")
    assert (head["seed"], head["digest"]) == (7, report.digest)
    assert head["summary"] == {"total": 4, "passed": 3, "failed": 1}


def test_a_scenario_tells_its_jobs_and_its_usage() -> None:
    talk = english(2)
    usage = {
        "bytes_sent": talk.totals.bytes_sent,
        "bytes_received": talk.totals.bytes_received,
        "approx_tokens": talk.totals.approx_tokens,
        "measured_tokens": talk.totals.measured_tokens,
        "reported_tokens": talk.totals.reported_tokens,
        "tokenizer": "o200k_base",
    }
    report = _report()
    scenarios: Any = report_json(report)["scenarios"]
    assert scenarios[2] == {
        "id": "english",
        "suite": "usage",
        "engine": "statek",
        "profile": "docs",
        "outcome": "passed",
        "digest": report.rows[2].digest,
        "jobs": [
            {
                "name": "main",
                "agent": "worker",
                "status": "DONE",
                "stop": "exit",
                "exit": "done",
                "error": None,
                "llm_calls": 2,
                "turns": 2,
                "exceptions": 0,
                "usage": usage,
            }
        ],
        "usage": usage,
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, "nan"),
        (["a" * 10**6] * 3, "<3000000 characters, too many to show here>"),
        ([-math.inf, 1.5], ["-inf", 1.5]),
        ({"n": 10**5000}, {"n": "integer of 16610 bits"}),
        (True, True),
    ],
)
def test_an_exit_value_that_json_cannot_hold_is_written_as_text(value: JSON, written: JSON) -> None:
    scenarios = json.loads(json_text(report_json(_report(exit_value=value))))["scenarios"]
    assert scenarios[2]["jobs"][0]["exit"] == written


def test_equal_runs_make_equal_texts() -> None:
    assert json_text(report_json(_report())) == json_text(report_json(_report()))
    assert json.loads(json_text(report_json(_report()))) == report_json(_report())
