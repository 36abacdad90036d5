"""Scenario items under the watchdog: one that hangs fails, the others go on."""

from __future__ import annotations

import pytest

TOOLS = """\
from statek_sim import tool

@tool
def hang(**kwargs):
    while True:
        pass
"""
SCENARIOS = """\
suite: hostile
defaults: {profiles: [docs], agents: {worker: {tools: ["hostile_tools:hang"]}}}
scenarios:
  - {id: fine, title: Fine, script: {worker: [{code: exit(1)}]}, expect: {jobs: {main: {exit: 1}}}}
  - {id: hangs, title: Hangs, script: {worker: [{code: print(1)}, {code: hang()}]}, expect: {}}
  - {id: fine-too, title: Fine, script: {worker: [{code: exit(2)}]}, expect: {jobs: {main: {exit: 2}}}}
"""


@pytest.fixture
def hostile(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nstatek_watchdog = cpu=1\n")
    pytester.makepyfile(hostile_tools=TOOLS)
    pytester.makefile(".yaml", hostile=SCENARIOS)
    return pytester


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.slow)]
)
def test_a_scenario_that_hangs_fails_and_the_others_go_on(
    hostile: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = hostile.runpytest_subprocess("--statek-scenarios=hostile.yaml", *workers)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*killed by the watchdog: 1 s CPU in turn 2 of job main*"])


def test_limits_that_are_none_are_a_usage_error(hostile: pytest.Pytester) -> None:
    result = hostile.runpytest_subprocess("--statek-scenarios=hostile.yaml", "-ostatek_watchdog=cpu=soon")
    result.stderr.fnmatch_lines(["*--watchdog: cpu=soon: expected a number of seconds, greater than 0*"])


@pytest.mark.slow
def test_without_a_watchdog_and_under_a_debugger_scenarios_run_where_pytest_runs(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        where="""
        import os
        from statek_sim import tool

        @tool
        def place(**kwargs):
            return os.getpid() == int(os.environ["PYTEST_PROCESS"])
        """
    )
    pytester.makeconftest("import os; os.environ['PYTEST_PROCESS'] = str(os.getpid())")
    pytester.makefile(
        ".yaml",
        where="""
        scenarios:
          - id: where
            title: Where it runs
            profiles: [docs]
            agents: {worker: {tools: ["where:place"]}}
            script: {worker: [{code: exit(place())}]}
            expect: {jobs: {main: {exit: true}}}
        """,
    )
    for option, passed in (("-ostatek_watchdog=off", 1), ("--pdb", 1), ("--statek-seed=1", 0)):
        result = pytester.runpytest_subprocess("--statek-scenarios=where.yaml", option)
        result.assert_outcomes(passed=passed, failed=1 - passed)
