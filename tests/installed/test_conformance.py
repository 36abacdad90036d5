"""The comparison with real versions of STATEK, where `make conformance` has set their environments up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from statek_sim.backends.installed.peer import Lost, Peer, Ran, profile_of_peer
from statek_sim.conformance.declared import load_declarations
from statek_sim.conformance.matrix import Verdict, run_matrix
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.installed import run_one_installed
from statek_sim.suite.result import Outcome
from statek_sim.suite.run import builtin_suites
from tools.environments import environments

PYTHONS = [one.interpreter for one in environments(ci=True) if one.interpreter.exists()]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHONS, reason="no real STATEK here; `make test` and `make conformance` install it"
    ),
]

ENDLESS = """\
scenarios:
  - id: endless
    title: A loop without end.
    limits: {max_turns: 5}
    agents: {clerk: {chat_style: MARKDOWN, tools: [note]}}
    script: {clerk: [{code: "while True:\\n    pass\\n"}]}
  - id: repeated
    title: A step that never succeeds.
    agents: {clerk: {chat_style: MARKDOWN, tools: [note]}}
    script: {clerk: [{code: "raise BaseException('stop')"}]}
  - id: short
    title: One reply.
    agents: {clerk: {chat_style: MARKDOWN, tools: [note]}}
    script: {clerk: [{code: "note('done')\\nexit('ok')"}]}
    expect: {jobs: {main: {status: DONE, stop: exit, exit: ok, llm_calls: 1}}}
"""


@pytest.fixture(params=PYTHONS, ids=lambda path: path.parent.parent.name)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with Peer(str(request.param), deadline=3) as started:
        yield started


@pytest.fixture
def scenarios(tmp_path: Path) -> dict[str, Scenario]:
    path = tmp_path / "some.yaml"
    path.write_text(ENDLESS)
    return {scenario.id: scenario for scenario in load_or_fail([path])}


def test_code_that_never_ends_is_killed_and_the_next_scenario_runs(
    peer: Peer, scenarios: dict[str, Scenario]
) -> None:
    profile = profile_of_peer(peer)

    assert peer.run(scenarios["endless"], profile) == Lost("hangs: killed after 3 s")
    outcome = peer.run(scenarios["short"], profile)

    assert isinstance(outcome, Ran)
    assert outcome.facts["ledger"] == ["done"]


def test_a_step_that_the_worker_repeats_forever_is_told_as_a_livelock(
    peer: Peer, scenarios: dict[str, Scenario]
) -> None:
    outcome = peer.run(scenarios["repeated"], profile_of_peer(peer))

    assert isinstance(outcome, Ran)
    assert outcome.facts["error"] == {
        "type": "Livelock",
        "message": "job 'main' repeats the same step forever: BaseException: stop",
    }


def test_a_scenario_is_compared_with_what_it_expects(peer: Peer, scenarios: dict[str, Scenario]) -> None:
    result = run_one_installed(peer, scenarios["short"], profile_of_peer(peer))

    assert (result.outcome, result.record.backend) == (Outcome.PASSED, "installed")


def test_the_suite_that_tells_releases_apart_agrees_on_every_one_of_them() -> None:
    scenarios = load_or_fail([builtin_suites() / "versions"])

    for matrix in run_matrix([str(path) for path in PYTHONS], scenarios, load_declarations()):
        assert {row.verdict for row in matrix.rows} == {Verdict.AGREE}
        assert len(matrix.rows) == len(scenarios)
