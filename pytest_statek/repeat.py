"""`@pytest.mark.statek_repeat(20, pass_at_least=0.9)`: runs a test repeatedly. The test passes if enough runs pass.

Function-scoped fixtures are set up again for each run. Registered as a plugin if a test has the marker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, comb
from typing import Final

import pytest

from pytest_statek.options import REPEAT, RUN_NUMBER
from statek_sim.intervals import Z, wilson

POWERS: Final = (2, 4, 8)
"""The values of k for pass^k, the probability that k runs all pass."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """The number of times a test runs, and the fraction of runs that must pass."""

    runs: int
    pass_at_least: float = 1.0

    def __post_init__(self) -> None:
        """Reject invalid numbers."""
        if type(self.runs) is not int or self.runs < 1:
            raise pytest.UsageError(f"@pytest.mark.{REPEAT}: expected a number of runs, got {self.runs!r}")
        if not 0 < self.pass_at_least <= 1:
            raise pytest.UsageError(
                f"@pytest.mark.{REPEAT}: expected pass_at_least above 0 and at most 1, got {self.pass_at_least!r}"
            )

    def passes(self, passed: int) -> bool:
        """Return whether enough runs passed."""
        return passed / self.runs >= self.pass_at_least

    def verdict(self, passed: int) -> str:
        """Return a line with the fraction of passed runs, its 95 % interval, pass^k, and the required fraction."""
        low, high = wilson(passed, self.runs) or (0.0, 1.0)
        powers = "".join(
            f", pass^{k} {comb(passed, k) / comb(self.runs, k):.0%}"
            for k in POWERS
            if passed < self.runs and k <= self.runs
        )
        share = f"{passed} of {self.runs} runs passed (95 % interval {low:.0%} to {high:.0%}{powers})"
        wanted = f"{self.pass_at_least:.0%}"
        if not self.passes(passed):
            return f"{share}, expected at least {wanted}"
        if low >= self.pass_at_least or self.pass_at_least == 1:
            return f"{share}, at least {wanted}"
        needed = least_runs(self.pass_at_least)
        return f"{share}; too few runs to show {wanted}, which requires {needed} runs without a failure"


def least_runs(share: float) -> int:
    """Return the number of failure-free runs needed to show a pass rate, using Wilson's lower bound, n / (n + z²)."""
    return ceil(share * Z * Z / (1 - share))


def repetition_of(item: pytest.Item) -> Repetition | None:
    """Return how a test is repeated, or None if it is not marked."""
    marker = item.get_closest_marker(REPEAT)
    if marker is None:
        return None
    try:
        return Repetition(*marker.args, **marker.kwargs)
    except TypeError:
        raise pytest.UsageError(
            f"{item.nodeid}: expected @pytest.mark.{REPEAT}(runs, pass_at_least=share)"
        ) from None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a marked test repeatedly and report it once."""
    repetition = repetition_of(item)
    if repetition is None or not isinstance(item, pytest.Function):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item, nextitem, repetition):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _reports(
    item: pytest.Function, nextitem: pytest.Item | None, repetition: Repetition
) -> list[pytest.TestReport]:
    """Run the test repeatedly; return the three reports from one run, with the overall verdict in the call report."""
    runs = [_again(item, number) for number in range(repetition.runs)]
    passed = 0
    failed: list[int] = []
    shown: list[pytest.TestReport] = []
    for number, run in enumerate(runs):
        following = runs[number + 1] if number + 1 < len(runs) else nextitem
        first, call, last = _run(run, following, nextitem)
        if call is None or call.skipped:
            # A failing fixture or a skip says nothing about the agent.
            return [first, *([call] if call else []), last]
        passed += call.passed
        if not shown or (call.failed and not failed):
            shown = [first, call, shown[2] if shown else last]
        if call.failed:
            failed.append(number)
        if last.failed:
            shown[2] = last
    verdict = repetition.verdict(passed)
    for report in shown:
        if report.when == "call":
            report.user_properties.append((REPEAT, verdict))
            report.outcome = "passed" if repetition.passes(passed) else "failed"
            seeds = ", ".join(map(str, failed))
            failure = f"{verdict}\nfailed with statek_seed {seeds}; first failure:\n\n{report.longreprtext}"
            report.longrepr = None if report.passed else failure
    return shown


def _again(item: pytest.Function, number: int) -> pytest.Function:
    """Return a copy of the test as a new item, so that pytest sets up its fixtures again."""
    made: pytest.Function = type(item).from_parent(
        item.parent,
        name=item.name,
        originalname=item.originalname,
        callspec=getattr(item, "callspec", None),
        # Private: pytest has no public way to run a parametrized test again.
        fixtureinfo=item._fixtureinfo,
    )
    made.own_markers[:] = item.own_markers
    made.stash[RUN_NUMBER] = number
    return made


def _run(
    run: pytest.Function, following: pytest.Item | None, nextitem: pytest.Item | None
) -> tuple[pytest.TestReport, pytest.TestReport | None, pytest.TestReport]:
    """Run the test once; return the setup, call (None if the setup failed) and teardown reports.

    `following` is the next run, if any; `nextitem` is the test that comes after the last run. pytest keeps the fixtures
    that the next item needs.
    """
    hook = run.ihook
    first = _phase(run, "setup", partial(hook.pytest_runtest_setup, item=run))
    call = _phase(run, "call", partial(hook.pytest_runtest_call, item=run)) if first.passed else None
    behind = following if call is not None and not call.skipped else nextitem
    return (
        first,
        call,
        _phase(run, "teardown", partial(hook.pytest_runtest_teardown, item=run, nextitem=behind)),
    )


def _phase(run: pytest.Function, when: str, act: Callable[[], object]) -> pytest.TestReport:
    stop = (pytest.exit.Exception, KeyboardInterrupt)
    call = pytest.CallInfo.from_call(act, when=when, reraise=stop)  # type: ignore[arg-type]  # one of three words
    report: pytest.TestReport = run.ihook.pytest_runtest_makereport(item=run, call=call)
    return report
