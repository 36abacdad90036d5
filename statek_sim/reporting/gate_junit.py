"""The gate's result as JUnit XML: a suite per preset, a test case per rule and scenario."""

from __future__ import annotations

import re
from typing import Final

from junitparser import Failure, JUnitXml, TestCase, TestSuite

from statek_sim.gate.verdict import GateResult, JudgedPreset, Verdict

_FORBIDDEN: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot say, not even escaped."""


def gate_junit(result: GateResult) -> str:
    """Return the document. Equal results give equal text: real time is not in it."""
    document = JUnitXml("statek-sim gate")
    for preset in result.presets:
        document.add_testsuite(_suite(preset, result))
    # The library says no types for these two.
    document.update_statistics()  # type: ignore[no-untyped-call]
    xml: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.decode()}\n'


def _suite(preset: JudgedPreset, result: GateResult) -> TestSuite:
    suite = TestSuite(_plain(preset.name))
    suite.add_property("profile", result.profile)
    suite.add_property("policy", _plain(preset.policy.as_posix()))
    for verdict in result.verdicts:
        if verdict.preset == preset.name:
            suite.add_testcase(_case(verdict))
    return suite


def _case(verdict: Verdict) -> TestCase:
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
