"""`--statek-explore`: one more test per scenario."""

from __future__ import annotations

import pytest

SCENARIOS = """\
suite: mine
scenarios:
  - id: thinks
    title: A job that touches nothing.
    profiles: [docs]
    agents: {idle: {prompt: You think.}}
    script: {idle: [{code: "exit(1)"}]}
    expect: {jobs: {main: {exit: 1}}}
  - id: claims
    title: A claim is processed.
    profiles: [docs]
    world: {queue: {items: [invoice-1]}}
    agents: {clerk: {prompt: You work., tools: [fetch_next_item, process_item]}}
    jobs: {main: {message: Go., locals: {owner: {$world: owner}}}}
    script: {clerk: [{code: "owner, item = fetch_next_item(owner)"}, {code: "process_item(item)\\nexit('ok')"}]}
    expect: {jobs: {main: {exit: ok}}}
"""


@pytest.fixture
def mine(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".yaml", mine=SCENARIOS)
    return pytester


def test_without_the_option_nothing_is_explored(mine: pytest.Pytester) -> None:
    mine.runpytest("--statek-scenarios=mine.yaml").assert_outcomes(passed=2)


def test_each_scenario_is_explored_in_a_test_of_its_own(mine: pytest.Pytester) -> None:
    result = mine.runpytest("--statek-scenarios=mine.yaml", "--statek-explore")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*FAILED mine/claims?docs? no-claim-leaked*",
            "*kill after event 9 (invoice-1: CLAIMED by worker-1 of main), restart 60 s later*",
            "*statek-sim explore *mine.yaml --select claims --save DIR*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_invariants_of_ones_own_are_asked(mine: pytest.Pytester) -> None:
    mine.makepyfile(
        my_rules="def no_job_ends_with_one(run):\n    return str([job.exit for _, job in run.ending.jobs])\n"
    )
    mine.makeini("[pytest]\nstatek_invariants = my_rules:no_job_ends_with_one\n")
    result = mine.runpytest("--statek-scenarios=mine.yaml", "--statek-explore", "-k", "explore and thinks")
    result.stdout.fnmatch_lines(["*FAILED mine/thinks?docs? my_rules:no_job_ends_with_one*"])
