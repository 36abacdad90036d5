"""An experiment as JUnit XML: a suite per arm, a test case per scenario, failed when not all of its runs were right."""

from __future__ import annotations

from junitparser import Failure, JUnitXml, TestCase, TestSuite

from statek_sim.evals.summary import CellSummary, Summary


def evals_junit(summary: Summary) -> str:
    """Return the document. Equal results give equal text: real time is not in it."""
    document = JUnitXml("statek-sim evals")
    for arm in summary.arms:
        suite = TestSuite(f"evals {arm.arm.name}")
        suite.add_property("model", summary.experiment.model.name)
        for scenario in summary.experiment.suite:
            suite.add_testcase(_case(scenario.id, arm.arm.name, summary.cells[scenario.id][arm.arm.name]))
        document.add_testsuite(suite)
    # The library says no types for these two.
    document.update_statistics()  # type: ignore[no-untyped-call]
    xml: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.decode()}\n'


def _case(scenario: str, arm: str, cell: CellSummary) -> TestCase:
    case = TestCase(scenario, classname=f"evals.{arm}", time=0)
    if cell.passed < cell.runs:
        message = f"{cell.passed} of {cell.runs} runs right, {cell.completed} ended by an answer"
        case.result = [Failure(message, "evals")]
    return case
