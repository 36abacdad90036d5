"""A real SIGKILL at a commit, and a new process that goes on: the trace is that of a simulated kill, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.backends.durable import DurableRun
from statek_sim.explore.plan import distinct_points, kill_at, restart_of
from statek_sim.explore.variation import Variation, undisturbed, varied
from statek_sim.store.protocol import Lease
from statek_sim.suite.run import builtin_suites
from tests.explore import samples
from tests.store.dying import killed_run
from tools.durability import NoStore, Tally, pairs, resumed, stored_points, try_point

EVERY = 15
"""Of the built-in scenarios every so manieth is killed, at two places."""


def built_in(file: str, scenario: str) -> Variation:
    """Return the undisturbed run of a built-in scenario."""
    (found,) = [pair for pair in pairs(None, [builtin_suites() / file]) if pair[0].id == scenario]
    return undisturbed(*found)


@pytest.mark.parametrize("text", [samples.CLAIM, samples.WAITS], ids=["claims", "waits"])
def test_every_distinct_crash_point_leaves_the_trace_of_the_simulated_kill(tmp_path: Path, text: str) -> None:
    scenario = samples.scenario(tmp_path, text)
    base = undisturbed(scenario, "docs")
    points = distinct_points(base)[::3]
    for number, point in enumerate(points):
        address = f"sqlite:{tmp_path / f'{number}.db'}"
        killed_run(address, scenario, "docs", point.place, first_run=base.first_run)
        digest, commit, _ = resumed(address, base)
        # In the middle of what the application does, nothing of it was committed.
        assert commit == point.place or point.what in ("JobCreated", "UserMessage", "approval: resolved"), (
            point
        )
        if commit is not None:
            with varied(base, [kill_at(point._replace(place=commit), restart_of(base))]) as simulated:
                assert digest == simulated.digest, point


def test_what_a_block_had_built_when_its_process_died_is_counted_by_nobody(tmp_path: Path) -> None:
    base = built_in("exceptions/containment.yaml", "contained-data-kept-over-turns")
    tally = Tally()
    for point in [point for point in stored_points(base) if point.what == "ConsoleLine"][-3:]:
        try_point(tally, base, point, tmp_path)
    assert (tally.wrong, tally.alike) == ([], 3)


def test_a_new_process_tells_of_a_variable_that_could_not_be_stored(tmp_path: Path) -> None:
    """Its process dies when the block has ended and before it was told."""
    base = built_in("storage/documents.yaml", "documents-keep-every-value")
    tally = Tally()
    for point in stored_points(base):
        if point.what in ("CodeExecuted", "StoreRemark"):
            try_point(tally, base, point, tmp_path)
    assert tally.wrong == []
    assert tally.alike == 2


WRITES = """\
suite: mine
scenarios:
  - id: writes
    title: A clerk writes to what the world has.
    world: {queue: {items: [invoice-1, invoice-2]}}
    agents: {clerk: {prompt: You process invoices., tools: [fetch_next_item]}}
    jobs: {main: {message: Go., locals: {owner: {$world: owner}}}}
    script:
      clerk:
        - {code: "owner, item = fetch_next_item(owner)\\nitem.note = [5]\\nowner.tag = 'x'\\ndel item.id"}
        - {code: "print(item.note, owner.tag)\\nprint(item.id)"}
        - {code: "exit('ok')"}
"""


def test_what_agent_code_wrote_to_items_and_owners_is_there_for_another_process(tmp_path: Path) -> None:
    base = undisturbed(samples.scenario(tmp_path, WRITES), "docs")
    tally = Tally()
    points = stored_points(base)
    written = next(number for number, point in enumerate(points) if point.what == "LLMReplied" and number > 6)
    for point in points[written : written + 2]:
        try_point(tally, base, point, tmp_path)
    assert (tally.wrong, tally.alike) == ([], 2)


def test_a_key_that_dbzero_lost_is_stored() -> None:
    base = built_in("storage/changed.yaml", "keys-that-cannot-be-hashed")
    kept = DurableRun(
        NoStore(),
        Lease(run="run", worker="worker", fence=1, revision=0),
        base.scenario,
        base.profile,
        first_run=base.first_run,
    )
    assert kept.finish().digest == base.digest


@pytest.mark.slow
def test_built_in_scenarios_that_are_killed_for_real_leave_the_trace_of_the_simulated_kill(
    tmp_path: Path,
) -> None:
    """A share of what `python -m tools.durability` does."""
    tally = Tally()
    for scenario, profile in [*pairs(None, ())][::EVERY]:
        if "restart" in scenario.id:
            # One of them has 1,694 points, each of them a walk over 250 jobs.
            continue
        base = undisturbed(scenario, profile)
        points = stored_points(base)
        for point in points[1 :: max(len(points) // 2, 1)]:
            try_point(tally, base, point, tmp_path)
    assert tally.wrong == []
    assert tally.alike == tally.killed > 40
