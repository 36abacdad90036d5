"""Renders results as JUnit XML, without real times, so that equal results give equal text.

A gate result has a test suite per preset, with a case per rule and scenario. An experiment has a test suite per arm,
with a case per eval.
"""

from __future__ import annotations

import re
from typing import Final

from junitparser import Failure, JUnitXml, TestCase, TestSuite

from statek_sim.evals.summary import CellSummary, Summary
from statek_sim.gate.verdict import GateResult, JudgedPreset, Verdict

_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even escaped."""


def gate_junit(result: GateResult) -> str:
    """Return a gate's verdicts as JUnit XML."""
    document = JUnitXml("statek-sim gate")
    for preset in result.presets:
        document.add_testsuite(_suite(preset, result))
    return _text(document)


def evals_junit(summary: Summary) -> str:
    """Return an experiment as JUnit XML; a case fails unless all of the eval's runs in the arm were right."""
    document = JUnitXml("statek-sim evals")
    for arm in summary.arms:
        suite = TestSuite(f"evals {arm.arm.name}")
        suite.add_property("model", summary.experiment.model.name)
        for scenario in summary.experiment.suite:
            suite.add_testcase(
                _cell_case(scenario.id, arm.arm.name, summary.cells[scenario.id][arm.arm.name])
            )
        document.add_testsuite(suite)
    return _text(document)


def _text(document: JUnitXml) -> str:
    # The library has no types for these two.
    document.update_statistics()  # type: ignore[no-untyped-call]
    xml: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.decode()}\n'


def _suite(preset: JudgedPreset, result: GateResult) -> TestSuite:
    suite = TestSuite(_plain(preset.name))
    suite.add_property("profile", result.profile)
    suite.add_property("policy", _plain(preset.policy.as_posix()))
    for verdict in result.verdicts:
        if verdict.preset == preset.name:
            suite.add_testcase(_verdict_case(verdict))
    return suite


def _verdict_case(verdict: Verdict) -> TestCase:
    case = TestCase(_plain(verdict.scenario), classname=_plain(f"{verdict.preset}.{verdict.rule}"), time=0)
    if not verdict.passed:
        case.result = [_failure(verdict)]
    return case


def _failure(verdict: Verdict) -> Failure:
    failure = Failure(_plain(verdict.reason), "verdict")
    failure.text = _plain(f"{verdict.place}: {verdict.reason}")
    return failure


def _plain(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _cell_case(scenario: str, arm: str, cell: CellSummary) -> TestCase:
    case = TestCase(scenario, classname=f"evals.{arm}", time=0)
    if cell.passed < cell.runs:
        message = f"{cell.passed} of {cell.runs} runs right, {cell.completed} ended with an answer"
        case.result = [Failure(message, "evals")]
    return case
