"""The comparison with real versions of STATEK, where `make conformance` has set their environments up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from statek_sim.backends.installed.peer import Lost, Peer, Ran, profile_of_peer
from statek_sim.compare.matrix import Verdict, run_matrix
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.installed import run_one_installed
from statek_sim.suite.result import Outcome
from statek_sim.suite.run import builtin_suites
from statek_sim.trace import WorldChanged
from tools.environments import on_this_python

PYTHONS = [one.interpreter for one in on_this_python()]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHONS, reason="no real STATEK here; `make thorough` and `make conformance` install it"
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
  - id: growing
    title: A value that grows.
    agents: {clerk: {chat_style: MARKDOWN, tools: [note]}}
    script: {clerk: [{code: "report = 'x'\\nwhile True:\\n    report = report + report\\n"}]}
  - id: killed
    title: A worker that is killed in a tool, and another that goes on.
    world: {queue: {items: [a, b]}}
    agents: {clerk: {chat_style: MARKDOWN, tools: [fetch_next_item]}}
    jobs: {main: {locals: {owner: {$world: owner}}}}
    script:
      clerk:
        - code: |
            before = [owner]
            item = fetch_next_item(owner)
        - code: exit(len(before))
    events: [{after: {tool: fetch_next_item}, crash: worker}, {at: 60, restart: worker}]
    expect:
      llm_calls: 2
      jobs: {main: {exit: 1, tool_calls: [{name: fetch_next_item}, {name: fetch_next_item}]}}
      world: {items: {a: {status: CLAIMED}, b: {status: CLAIMED}}}
  - id: short
    title: One reply.
    agents: {clerk: {chat_style: MARKDOWN, tools: [note]}}
    script: {clerk: [{code: "note('done')\\nexit('ok')"}]}
    expect: {jobs: {main: {status: DONE, stop: exit, exit: ok, llm_calls: 1}}}
"""


@pytest.fixture(params=PYTHONS, ids=lambda path: path.parent.parent.name)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with Peer(str(request.param)) as started:
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

    lost = peer.run(scenarios["endless"], profile)
    outcome = peer.run(scenarios["short"], profile)

    assert isinstance(lost, Lost)
    assert (lost.kind, lost.reason) == (
        "NeverEnds",
        "killed: the code was still running after 1 s of CPU time",
    )

    assert isinstance(outcome, Ran)
    assert outcome.facts["ledger"] == ["done"]


def test_code_that_eats_the_machine_is_killed(peer: Peer, scenarios: dict[str, Scenario]) -> None:
    lost = peer.run(scenarios["growing"], profile_of_peer(peer))

    assert isinstance(lost, Lost)
    assert (lost.kind, lost.reason) == (
        "OutOfMemory",
        "killed: the code used more than 512 MiB of memory",
    )


def test_a_killed_worker_leaves_its_store_and_the_world_to_the_next(
    peer: Peer, scenarios: dict[str, Scenario]
) -> None:
    result = run_one_installed(peer, scenarios["killed"], profile_of_peer(peer))

    assert result.mismatches == ()
    changes = [event.change for event in result.record.events if isinstance(event, WorldChanged)]
    assert changes == [
        "CLAIMED by worker-1",
        "killed in call 1 of fetch_next_item",
        "restarted",
        "CLAIMED by worker-1",
    ]


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


OWNERS = """\
scenarios:
  - id: owners
    title: Two owners, one of whom is first wanted in a process after the first.
    world: {queue: {items: [a, b]}, futures: [go]}
    agents: {clerk: {tools: [fetch_next_item, process_item, wait_for]}}
    jobs:
      one: {locals: {owner: {$world: "owner:other"}}}
      two: {locals: {owner: {$world: "owner:worker-1"}}}
      three: {at: 20, locals: {owner: {$world: "owner:other"}}}
    script:
      job:one:
        - code: owner, item = fetch_next_item(owner)
        - code: |
            print(wait_for('go'), item, owner)
            process_item(item)
            exit(item.id)
      job:two:
        - code: |
            owner, item = fetch_next_item(owner)
            print(item, owner)
            exit(item.id)
      job:three: [{code: "exit(fetch_next_item(owner))"}]
    events: [{at: 5, crash: worker}, {at: 8, restart: worker}, {at: 10, resolve: go, value: 1}]
"""


def test_another_owner_than_the_queues_is_one_on_real_releases_too(tmp_path: Path) -> None:
    (tmp_path / "owners.yaml").write_text(OWNERS)
    scenarios = load_or_fail([tmp_path / "owners.yaml"])
    for matrix in run_matrix([str(path) for path in PYTHONS], scenarios):
        assert {row.verdict for row in matrix.rows} == {Verdict.AGREE}


def test_the_suite_that_tells_releases_apart_agrees_on_every_one_of_them() -> None:
    scenarios = load_or_fail([builtin_suites() / "versions"])

    for matrix in run_matrix([str(path) for path in PYTHONS], scenarios):
        assert {row.verdict for row in matrix.rows} == {Verdict.AGREE}
        assert len(matrix.rows) == len(scenarios)
