"""What an exploration finds, says and counts."""

from __future__ import annotations

import gc
from itertools import count
from pathlib import Path

import pytest

from statek_sim.explore import explorer
from statek_sim.explore.explorer import Bounds, Explorer
from statek_sim.explore.player import sometimes
from statek_sim.explore.result import Count, Explored
from statek_sim.explore.statek_player import PLANS
from statek_sim.explore.variation import Variation, undisturbed, varied
from statek_sim.harness.limits import LimitName
from statek_sim.scenario.events import Deviation
from statek_sim.trace import WorldChanged
from tests.explore import samples

ONLY_CRASHES = Bounds(kinds=("crashes",))


def explored(folder: Path, text: str, bounds: Bounds | None = None, **invariants: object) -> Explored:
    scenario = samples.scenario(folder, text)
    return Explorer(scenario, scenario.profiles[0], invariants, bounds).explore()  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def claim(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    return explored(tmp_path_factory.mktemp("claim"), samples.CLAIM, ONLY_CRASHES)


def test_a_claim_whose_handler_is_not_registered_yet_leaks(claim: Explored) -> None:
    failure = next(one for one in claim.failures if one.invariant == "no-claim-leaked")
    assert failure.message == "invoice-1 still claimed after every job has ended"
    assert [one.what for one in failure.deviations] == ["invoice-1: CLAIMED by worker-1 of main"]
    assert claim.proven == {"crashes": Count(16, 16)}


def test_a_job_sleeps_for_ever_when_its_worker_dies_while_it_wakes_it(tmp_path: Path) -> None:
    # STATEK takes the future off before it sets the status (1.4.2, `_release_ready_continuation`).
    found = explored(tmp_path, samples.WAITS, ONLY_CRASHES)
    assert [failure.deviations[0].what for failure in found.failures] == ["Released of main"] * 2


def test_a_job_that_begins_to_wait_for_what_is_there_is_woken_after_a_crash(tmp_path: Path) -> None:
    found = explored(tmp_path, samples.UNPACKS, ONLY_CRASHES)
    assert {failure.deviations[0].what for failure in found.failures} == {"Released of main"}


def test_tools_have_a_certificate_for_each_phase_of_their_calls(tmp_path: Path, claim: Explored) -> None:
    tools = {tool.tool: tool for tool in claim.tools}
    fetch = tools["fetch_next_item"]
    assert (fetch.before, fetch.during, fetch.after) == ("safe", "leaks", "leaks")
    tools = {tool.tool: tool for tool in explored(tmp_path, samples.WAITS, ONLY_CRASHES).tools}
    assert (tools["note"].before, tools["note"].during) == ("safe", "at least once")


def test_a_tool_is_certified_for_being_run_twice_and_for_two_owners(tmp_path: Path, claim: Explored) -> None:
    tools = {tool.tool: tool for tool in claim.tools}
    assert (tools["fetch_next_item"].twice, tools["fetch_next_item"].owners) == ("leaks", "safe")
    assert (tools["process_item"].twice, tools["process_item"].owners) == ("safe", "safe")
    tools = {tool.tool: tool for tool in explored(tmp_path, samples.GIVES_UP, ONLY_CRASHES).tools}
    assert (tools["give_up"].twice, tools["give_up"].owners) == ("at least once", "leaks")
    # Nobody else is there to do it.
    tools = {tool.tool: tool for tool in explored(tmp_path, samples.WAITS, ONLY_CRASHES).tools}
    assert (tools["note"].twice, tools["note"].owners) == ("at least once", None)


def test_the_second_owner_does_what_the_job_of_that_name_does(tmp_path: Path) -> None:
    tools = {tool.tool: tool for tool in explored(tmp_path, samples.DIVIDED, ONLY_CRASHES).tools}
    assert (tools["give_up"].owners, tools["note"].owners) == ("leaks", "at least once")


def test_what_a_tool_does_in_finally_is_not_done_by_a_process_that_has_died(tmp_path: Path) -> None:
    found = explored(tmp_path, samples.GIVES_BACK, ONLY_CRASHES)
    failure = next(one for one in found.failures if one.invariant == "no-claim-leaked")
    assert [one.what for one in failure.deviations] == ["invoice-1: CLAIMED by worker-1 of main"]
    assert next(tool.during for tool in found.tools if tool.tool == "careful") == "leaks"


def test_a_worker_that_dies_in_one_async_tool_does_not_go_on_with_another(tmp_path: Path) -> None:
    scenario = samples.scenario(tmp_path, samples.ASYNC)
    base = undisturbed(scenario, scenario.profiles[0])
    done = next(point for point in base.points if point.what == "ledger: one: done")
    with varied(base, (Deviation(kill=done.place[0], restart=60.0),)) as variation:
        after = [event for event in variation.events if event.at >= done.at][1:3]
    assert [(event.subject, event.change) for event in after if isinstance(event, WorldChanged)] == [
        ("worker", f"killed after event {done.place[0]}"),
        ("worker", "restarted"),
    ]


def test_a_process_that_died_in_async_tools_leaves_no_complaints_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scenario = samples.scenario(tmp_path, samples.GATHERS)
    base = undisturbed(scenario, scenario.profiles[0])
    claimed = [point for point in base.points if "CLAIMED" in point.what or "DONE by" in point.what]
    assert len(claimed) == 4
    for point in claimed:
        with varied(base, (Deviation(kill=point.place[0], restart=60.0),)) as variation:
            died = variation.events[point.place[0]]
            assert isinstance(died, WorldChanged)
            assert died.change == f"killed after event {point.place[0]}"
    gc.collect()
    assert caplog.messages == []


def test_a_worker_that_the_scenario_started_is_not_ended_by_the_restart_after_a_kill(tmp_path: Path) -> None:
    scenario = samples.scenario(
        tmp_path,
        f"{samples.WAITS}\n      - {{at: 5, restart: worker}}".replace(
            "events: [{at: 10, resolve: approval, value: granted}]",
            "events:\n      - {at: 10, resolve: approval, value: granted}",
        ),
    )
    base = undisturbed(scenario, scenario.profiles[0])
    with varied(base, (Deviation(kill=3, restart=60.0),)) as variation:
        told = [
            (event.at, event.change)
            for event in variation.events
            if isinstance(event, WorldChanged) and event.subject == "worker"
        ]
    assert told == [(0.0, "killed after event 3"), (5.0, "restarted")]


def test_the_most_that_one_crash_adds_is_a_reply_that_is_paid_twice(claim: Explored) -> None:
    assert claim.crash.tokens > 0
    assert "LLMReplied" in claim.crash.where


def test_a_second_crash_during_recovery_is_played_too(tmp_path: Path) -> None:
    found = explored(tmp_path, samples.CLAIM, Bounds(depth=2))
    assert found.beyond.pairs.of > 100
    assert found.beyond.pairs.complete


def test_pairs_beyond_the_cap_are_counted_and_not_played(tmp_path: Path) -> None:
    beyond = explored(tmp_path, samples.CLAIM, Bounds(depth=2, pairs=10)).beyond
    assert beyond.pairs.tried == 10
    assert beyond.pairs.of > 100


def test_what_no_run_reaches_fails(tmp_path: Path) -> None:
    @sometimes
    def is_paid_twice(run: Variation) -> str | None:
        return "paid twice" if run.repeated else None

    @sometimes
    def ends_in_fire(run: Variation) -> str | None:
        return None

    found = explored(
        tmp_path, samples.THINKERS, Bounds(kinds=("crashes",)), twice=is_paid_twice, fire=ends_in_fire
    )
    assert found.reached == {"twice": True, "fire": False}
    assert found.failed


def test_an_outcome_that_depends_on_the_order_fails_where_the_scenario_says_any_order(tmp_path: Path) -> None:
    bounds = Bounds(kinds=("orders",))
    assert not explored(tmp_path, samples.TWO_JOBS, bounds).failures
    found = explored(tmp_path, samples.TWO_JOBS + "    tags: [any-order]\n", bounds)
    assert [failure.invariant for failure in found.failures] == ["any-order"]
    assert [str(one) for one in found.failures[0].deviations] == ["two steps first at choice 1"] or len(
        found.failures[0].deviations
    ) == 1


def test_a_tool_that_nobody_controls_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count()
    module = type("m", (), {})()

    from statek_sim import tool

    @tool
    def roll(**kwargs: object) -> int:
        """Return a number that is never the same."""
        return next(calls)

    module.roll = roll
    monkeypatch.setitem(__import__("sys").modules, "dice_of_a_test", module)
    tools = '{idle: {prompt: R., tools: ["dice_of_a_test:roll"]}}'
    text = samples.THINKERS.replace("{idle: {prompt: You think.}}", tools)
    text = text.replace('"exit(1)"', '"print(roll())\\nexit(1)"')
    found = explored(tmp_path, text, Bounds(kinds=("crashes", "faults", "orders")))
    failure = next(one for one in found.failures if one.invariant == "the-run-repeats")
    assert failure.message.endswith("after a call to tool 'roll'")


def test_the_same_reply_comes_again_after_a_crash(tmp_path: Path) -> None:
    base = undisturbed(samples.scenario(tmp_path, samples.CLAIM), "docs")
    place = next(point.place for point in base.points if point.what == "LLMReplied")
    with varied(base, (Deviation(kill=place[0]),)) as variation:
        assert variation.repeated == [("main", 1)]
        assert variation.ending == base.ending


def test_lines_of_the_ledger_outlive_commits_of_the_store_that_are_lost(tmp_path: Path) -> None:
    base = undisturbed(samples.scenario(tmp_path, samples.WAITS), "docs")
    event, line = base.first_run.lines[0]
    with varied(base, (Deviation(lose=event, to_event=event - 3),)) as variation:
        assert variation.ending.ledger.count(line) == 2


def test_an_event_may_come_before_anybody_waits_for_it(tmp_path: Path) -> None:
    base = undisturbed(samples.scenario(tmp_path, samples.WAITS), "docs")
    with varied(base, (Deviation(move=1, to=0.0),)) as variation:
        assert variation.ending.jobs == base.ending.jobs


def test_a_limit_binds_earlier(tmp_path: Path) -> None:
    base = undisturbed(samples.scenario(tmp_path, samples.CLAIM), "docs")
    with varied(base, (Deviation(limit=LimitName.MAX_TURNS, value=0),)) as variation:
        assert [job.stop for _, job in variation.ending.jobs] == ["max_turns"]


def test_exploring_twice_gives_equal_results(tmp_path: Path) -> None:
    assert explored(tmp_path, samples.TWO_JOBS) == explored(tmp_path, samples.TWO_JOBS)


def test_what_the_toolkit_refuses_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an event whose job or subtask is not there is no run: everything else that is refused is told."""
    monkeypatch.setitem(PLANS, "moves", lambda _: [Deviation(move=7, to=0.0)])
    found = explored(tmp_path, samples.WAITS, Bounds(kinds=("moves",)))
    (failure,) = found.failures
    assert failure.invariant == "the-runtime-survives"
    assert failure.message.endswith("cannot move event 7; number of events: 1")
    assert found.proven["moves"] == Count(1, 1)


def test_a_message_to_a_job_that_is_not_there_yet_is_no_run(tmp_path: Path) -> None:
    found = explored(tmp_path, samples.HANDS_OVER, Bounds(kinds=("moves",)))
    assert found.proven["moves"] == Count(2, 3)


def test_a_run_whose_script_runs_out_repeats(tmp_path: Path) -> None:
    found = explored(tmp_path, samples.HANDS_OVER, Bounds(kinds=("moves",)))
    assert found.failures == ()


@pytest.mark.parametrize("most", [1, 200])
def test_an_order_is_played_twice_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Its choices were a picker's, so that nothing in its scenario says what they were."""
    monkeypatch.setattr(explorer, "EVERY", 2)
    found = explored(tmp_path, samples.TWO_JOBS, Bounds(kinds=("orders",), orders=most, pct_runs=9))
    assert found.runs > 2
    assert found.failures == ()
