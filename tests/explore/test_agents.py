"""Exploring engine two: its process dies at every distinct moment, and a new one goes on from commits and receipts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from statek_sim.backends.agent import run_agent_scenario
from statek_sim.backends.deviation_plan import with_deviations
from statek_sim.backends.setup import RunOptions
from statek_sim.cli import main
from statek_sim.explore.agent_player import AgentPlayer, AgentVariation
from statek_sim.explore.explorer import Bounds, Explorer
from statek_sim.explore.plan import distinct_points, kill_at
from statek_sim.explore.player import REPEATS, sometimes
from statek_sim.explore.result import Count
from statek_sim.explore.workers import explore_one, own_invariants
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import LimitName
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import HarnessSpoke, ToolReturned
from tests.explore import samples

PAYS = """
suite: samples
scenarios:
  - id: pays
    title: An agent looks, pays and says so.
    engine: agent
    tools:
      look: {{description: Look., result: seen, after_crash: again}}
      pay: {{description: Pay., result: paid{pay}}}
    agents: {{assistant: {{prompt: You work.}}}}
    jobs: {{main: {{message: Work.}}}}
    script: {{assistant: [{{tools: [{{name: look}}]}}, {{tools: [{{name: pay}}], latency: 5}}, {{text: Done.}}]}}
"""
COIN = """
suite: samples
scenarios:
  - id: coin
    title: An agent throws a coin.
    engine: agent
    profiles: [hardened]
    agents: {assistant: {prompt: You throw., tools: ["coins:toss"]}}
    jobs: {main: {message: Throw.}}
    script: {assistant: [{tools: [{name: toss}]}, {text: Done.}]}
"""
CRASHES = Bounds(kinds=("crashes",))


def scenario(folder: Path, *, pay: str = "") -> Scenario:
    path = folder / "pays.yaml"
    path.write_text(PAYS.format(pay=pay))
    return load_or_fail([path])[0]


def test_a_hardened_agent_ends_as_undisturbed_or_asks_whether_it_paid(tmp_path: Path) -> None:
    found = explore_one(scenario(tmp_path), "hardened", own=(), bounds=CRASHES)
    assert found.failures == ()
    assert found.proven["crashes"].complete
    assert {cell.came for cell in found.cells} == {"same", "asks"}
    asked = {cell.what for cell in found.cells if cell.came == "asks"}
    assert asked == {"commit calling", "pay worked"}


def test_a_tool_that_can_tell_whether_it_happened_needs_nobody(tmp_path: Path) -> None:
    found = explore_one(scenario(tmp_path, pay=", after_crash: happened"), "hardened", own=(), bounds=CRASHES)
    assert "asks" not in {cell.came for cell in found.cells}


def test_pairs_are_a_second_death_after_the_first(tmp_path: Path) -> None:
    found = explore_one(
        scenario(tmp_path, pay=", after_crash: again"),
        "hardened",
        own=(),
        bounds=Bounds(kinds=("crashes",), depth=2),
    )
    assert found.beyond.pairs.complete
    assert found.beyond.pairs.tried > found.proven["crashes"].tried
    assert found.failures == ()


def test_every_limit_and_every_failing_request_of_an_agent_is_played(tmp_path: Path) -> None:
    bounds = Bounds(kinds=("limits", "faults", "orders"))
    found = explore_one(scenario(tmp_path), "hardened", own=(), bounds=bounds)
    assert found.failures == ()
    # Three turns and as many answers: each request fails in four ways.
    assert found.proven["faults"] == Count(12, 12)
    assert found.proven["limits"].complete
    assert found.proven["limits"].of >= 3
    assert found.proven["orders"] == Count(1, 1)


def test_a_request_that_fails_and_a_limit_that_binds_really_do(tmp_path: Path) -> None:
    player = AgentPlayer(scenario(tmp_path), "hardened")
    refused = player.play((Deviation(fault="401", job="main", reply=2),))
    assert refused.record.jobs["main"].answer is None
    assert player.play((Deviation(fault="401", job="main", reply=9),)).absent != ()
    stopped = player.play((Deviation(limit=LimitName.MAX_TURNS, value=0),))
    assert stopped.record.jobs["main"].stop == "max_turns"


def test_a_run_departs_from_one_of_the_callers_own(tmp_path: Path) -> None:
    player = AgentPlayer(scenario(tmp_path), "hardened")
    departed = with_deviations(player.scenario, (Deviation(fault="401", job="main", reply=2),))
    asked_for: list[LLM_Harness] = []

    def harness(given: LLM_Harness) -> LLM_Harness:
        asked_for.append(given)
        return given

    record = run_agent_scenario(departed, "hardened", RunOptions(harness=harness))
    assert record.jobs["main"].answer is None
    assert len(asked_for) == 2


OWN_CRASH = "events: [{at: 1, crash: worker}, {at: 2, restart: worker}]"

CRASH_IN_PAY = "events: [{after: {tool: pay}, crash: worker}, {at: 6, restart: worker}]"


def with_events(folder: Path, events: str, **words: str) -> Scenario:
    own = scenario(folder, **words).path
    own.write_text(own.read_text() + f"    {events}\n")
    return load_or_fail([own])[0]


def test_crashes_of_a_scenarios_own_belong_to_every_run(tmp_path: Path) -> None:
    own = with_events(tmp_path, OWN_CRASH)
    player = AgentPlayer(own, "hardened")
    found = explore_one(own, "hardened", own=(), bounds=Bounds(depth=2))
    assert found.failures == ()
    assert found.proven["crashes"].complete
    # It dies while it is told to pay, and its next process is told that all is done.
    assert player.base.moments.worked == [("main", "look")]
    assert {cell.came for cell in found.cells} == {"same"}
    assert {life for lives in player.base.moments.taken.values() for life in lives} == {0, 1}


def test_a_process_of_the_explorers_lives_on_over_a_restart_and_follows_on_a_late_crash(
    tmp_path: Path,
) -> None:
    player = AgentPlayer(with_events(tmp_path, CRASH_IN_PAY, pay=", after_crash: happened"), "hardened")
    assert player.base.record.jobs["main"].stop == "final"
    for late in (
        Deviation(fault="timeout", job="main", reply=1),
        Deviation(kill=3, restart=2),
        Deviation(kill=3, restart=60),
    ):
        assert player.play((late,)).record.jobs["main"].status == "DONE", late


def test_a_check_is_no_work_of_its_tool(tmp_path: Path) -> None:
    own = with_events(tmp_path, CRASH_IN_PAY, pay=", after_crash: happened")
    found = explore_one(own, "hardened", own=(), bounds=CRASHES)
    assert found.failures == ()


@pytest.mark.parametrize(
    ("extra", "words", "why"),
    [
        (
            "events: [{at: 1, crash: worker}]",
            ("-q",),
            "scenario 'pays': the worker dies and is not restarted, so crashes cannot be explored",
        ),
        (
            "",
            ("--kind", "commits"),
            "for the agent engine, expected --kind crashes, orders, limits, faults, moves",
        ),
    ],
)
def test_where_nothing_could_be_explored_nothing_is_green(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: str, words: tuple[str, ...], why: str
) -> None:
    own = scenario(tmp_path).path
    own.write_text(own.read_text() + f"    {extra}\n")
    with pytest.raises(SystemExit) as exit_:
        main(["explore", str(own), "--executor", "serial", *words])
    assert exit_.value.code == 2
    out = capsys.readouterr().out
    assert f"samples/pays[hardened]: not explored: {why}" in out
    assert out.endswith("1 scenario, 0 runs: nothing was explored\n")


def test_what_was_left_out_is_counted_beside_what_was_explored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario(tmp_path)
    (tmp_path / "thinkers.yaml").write_text(samples.THINKERS)
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "pays.yaml", "thinkers.yaml", "--kind", "commits", "--executor", "serial"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.endswith(" runs, 1 not explored: no failures\n")


SHARED = """
suite: samples
scenarios:
  - id: shared
    title: Two agents share a slot, and one of them is asked again.
    engine: agent
    profiles: [hardened]
    slots: {slots: 1}
    tools: {look: {description: Look., result: seen}}
    agents: {assistant: {prompt: You work.}}
    jobs: {first: {message: A.}, second: {message: B., at: 1}}
    events: [{at: 13, push: first, message: "And now?"}]
    script:
      "job:first": [{tools: [{name: look}], latency: 4}, {text: one, latency: 4}, {text: more, latency: 4}]
      "job:second": [{text: two, latency: 4}]
"""


def shared(folder: Path) -> Scenario:
    (folder / "shared.yaml").write_text(SHARED)
    return load_or_fail([folder / "shared.yaml"])[0]


def test_a_process_that_dies_with_runs_in_slots_and_before_them_leaves_nobody_waiting(tmp_path: Path) -> None:
    player = AgentPlayer(shared(tmp_path), "hardened")
    found = explore_one(shared(tmp_path), "hardened", own=(), bounds=CRASHES)
    assert found.proven["crashes"].complete
    # A message to a finished run is kept from its next commit on.
    assert [failure.deviations[0].what for failure in found.failures] == ["before commit began of first"]
    # The first one has the slot when its process dies, and has it again before the one who waits.
    (kill,) = [point for point in player.play(()).moments.points if point.what == "look worked"]
    events = player.play((kill_at(kill, 1.0),)).record.events
    spoke = [(event.at, event.job, event.action) for event in events if isinstance(event, HarnessSpoke)]
    assert spoke[:4] == [
        (0.0, "first", "has it"), (1.0, "second", "waits"), (5.0, "first", "has it"), (5.0, "second", "waits"),
    ]  # fmt: skip


def test_a_person_who_is_first_asked_about_the_crash_answers_the_rest_later() -> None:
    """Nobody answers that here, so that what the script answers is not asked yet when it does."""
    found = samples.built_in("agent-people", "agent-two-questions-at-once")
    explored = Explorer(found, "hardened", bounds=CRASHES).explore()
    assert explored.failures == ()
    assert [cell.came for cell in explored.cells].count("asks") == 2


def test_a_message_to_a_dead_process_is_taken_by_the_next_one(tmp_path: Path) -> None:
    player = AgentPlayer(shared(tmp_path), "hardened")
    points = player.play(()).moments.points
    (point,) = [point for point in points if (point.what, point.job) == ("commit ended", "second")]
    kill = kill_at(point, 5.0)
    assert player.play((kill,)).record.jobs["first"].answer == "more"
    explorer = Explorer(shared(tmp_path), "hardened")
    assert explorer.play((kill,)) == ()
    assert explorer.replay(REPEATS, (kill,)) == (None, ())


def test_a_job_that_answered_and_is_asked_again_has_the_limit_that_its_completions_extend(
    tmp_path: Path,
) -> None:
    found = explore_one(shared(tmp_path), "hardened", own=(), bounds=Bounds(kinds=("limits",)))
    assert found.proven["limits"].complete
    assert found.failures == ()


def test_an_agent_loses_no_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = scenario(tmp_path).path
    own.write_text(own.read_text() + "    deviations: [{lose: 3, to_event: 1}]\n")
    with pytest.raises(SystemExit) as exit_:
        main(["run", "pays.yaml"])
    assert exit_.value.code == 2
    assert "deviations: lose is only for the statek engine" in capsys.readouterr().err


def test_two_moments_with_the_same_second_commits_and_effects_are_one(tmp_path: Path) -> None:
    player = AgentPlayer(scenario(tmp_path), "hardened")
    assert 8 < len(distinct_points(player.base)) < len(player.base.points)


def test_an_agent_that_does_not_repeat_is_told_and_its_case_plays_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    samples.throws(monkeypatch)
    (tmp_path / "coin.yaml").write_text(COIN)
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "coin.yaml", "--executor", "serial", "--save", "found"])
    assert exit_.value.code == 1
    assert "FAILED samples/coin[hardened] the-run-repeats\n  event " in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "--replay", "found/coin-hardened-the-run-repeats.yaml"])
    assert exit_.value.code == 1
    assert "after a call to tool 'toss'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("most", "code", "told"),
    [("5", 1, "FAILED pays: one crash adds 78 tokens, allowed: 5 (kill "), ("78", 0, "no failures")],
)
def test_the_answers_that_died_with_their_process_are_the_price_of_a_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], most: str, code: int, told: str
) -> None:
    own = scenario(tmp_path).path
    with pytest.raises(SystemExit) as exit_:
        main(["explore", str(own), "--executor", "serial", "--max-crash-tokens", most])
    out = capsys.readouterr().out
    assert told in out
    assert exit_.value.code == code


def test_one_crash_asks_for_the_last_answer_again(tmp_path: Path) -> None:
    pays = scenario(tmp_path)
    found = explore_one(pays, "hardened", own=(), bounds=CRASHES)
    answers = [call.usage.measured_tokens for call in AgentPlayer(pays, "hardened").play(()).record.calls]
    assert found.crash.tokens == answers[-1] == max(answers)


TWO = """
suite: samples
scenarios:
  - id: two
    title: Two agents work at once, and one calls two tools that take time.
    engine: agent
    profiles: [hardened]
    tags: [any-order]
    tools:
      slow: {description: Slow., result: slowly, takes: 5}
      quick: {description: Quick., result: quickly, takes: 2}
    agents: {assistant: {prompt: You work.}}
    jobs: {one: {message: Work.}, two: {message: Work.}}
    script:
      "job:one": [{tools: [{name: slow}, {name: quick}]}, {text: Done.}]
      "job:two": [{text: Done.}]
"""
ORDERS = Bounds(kinds=("orders",))


def test_all_orders_of_runs_and_of_calls_are_played(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    player = AgentPlayer(load_or_fail([path])[0], "hardened")
    undisturbed = run_agent_scenario(player.scenario, "hardened")
    assert player.play(()).record.digest == undisturbed.digest
    found = explore_one(player.scenario, "hardened", own=(), bounds=ORDERS)
    # Which job begins, which goes on after its answer, and which of the calls ends first.
    assert found.proven["orders"].complete
    assert found.proven["orders"].of >= 4
    assert found.failures == ()


def test_calls_end_in_the_order_that_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    player = AgentPlayer(load_or_fail([path])[0], "hardened")
    choices = player.play(()).moments.plan.choices
    number = next(n for n, choice in enumerate(choices, 1) if set(choice.jobs) == {"slow", "quick"})
    assert choices[number - 1].jobs == ("quick", "slow")
    swapped = player.play((Deviation(choose=number, first="slow"),))
    ended = [(event.name, event.at) for event in swapped.record.events if isinstance(event, ToolReturned)]
    assert ended == [("slow", 2.0), ("quick", 5.0)]
    assert player.play((Deviation(choose=99, first="slow"),)).absent == ("slow steps first at choice 99",)


SEAT = """
suite: samples
scenarios:
  - id: seat
    title: Who comes second has no seat.
    engine: agent
    profiles: [hardened]
    limits: {max_exceptions: 0}
    tools: {seat: {description: Sit., results: [{result: seated}, {error: "Full: no seat"}]}}
    agents: {assistant: {prompt: You work.}}
    jobs: {one: {message: Work.}, two: {message: Work.}}
    script:
      "job:one": [{tools: [{name: seat}]}, {text: Done.}]
      "job:two": [{tools: [{name: seat}]}, {text: Done.}]
"""


def test_an_order_in_which_a_job_ends_otherwise_is_found_where_none_may_matter(tmp_path: Path) -> None:
    path = tmp_path / "seat.yaml"
    path.write_text(SEAT)
    assert explore_one(load_or_fail([path])[0], "hardened", own=(), bounds=ORDERS).failures == ()
    path.write_text(SEAT + "    tags: [any-order]\n")
    found = explore_one(load_or_fail([path])[0], "hardened", own=(), bounds=ORDERS)
    (failure,) = found.failures
    assert failure.invariant == "agent-any-order"
    assert "stop is" in failure.message


def test_messages_of_people_come_at_other_times(tmp_path: Path) -> None:
    own = scenario(tmp_path).path
    own.write_text(own.read_text() + "    events: [{at: 3, push: main, message: And this.}]\n")
    found = explore_one(load_or_fail([own])[0], "hardened", own=(), bounds=Bounds(kinds=("moves",)))
    moves = found.proven["moves"]
    assert moves.of >= 2
    assert moves.tried >= 2
    assert found.failures == ()


def test_a_tool_that_its_server_takes_back_is_found_as_what_no_new_process_has() -> None:
    changed = samples.built_in("agent-mcp", "mcp-changed-list-is-taken-over-with-the-next-turn")
    found = explore_one(changed, "hardened", own=(), bounds=CRASHES)
    assert found.proven["crashes"].complete
    (failure,) = found.failures
    assert failure.invariant == "agent-resumes-without-error"
    place = f"{changed.path}:{changed.line}: scenario {changed.id!r}: "
    assert failure.message == (
        f"{place}run 'main' was saved with tools that this agent does not have: wiki__search; register them "
        f"before you resume it"
    )


def test_an_agent_with_permissions_is_taken_up_again() -> None:
    allowed = samples.built_in("agent-permissions", "agent-permissions-asked-and-allowed")
    found = explore_one(allowed, "hardened", own=(), bounds=CRASHES)
    assert (found.problem, found.failures) == (None, ())
    assert found.proven["crashes"].complete
    assert "same" in {cell.came for cell in found.cells}


RULES = """
suite: samples
scenarios:
  - id: deploys
    title: Three agents deploy.
    engine: agent
    profiles: [hardened]
    tools: {deploy: {description: Deploy., result: deployed, after_crash: again}}
    agents: {assistant: {prompt: You work.}}
    jobs: {one: {message: Work.}, two: {message: Work.}, three: {message: Work.}}
    script:
      "job:one": [{tools: [{name: deploy}]}, {text: Done.}]
      "job:two": [{tools: [{name: deploy}]}, {text: Done.}]
      "job:three": [{tools: [{name: deploy}]}, {text: Done.}]
"""


def the_last_is_not_first(run: AgentVariation) -> str | None:
    """Two choices are needed for three to be first and one the last."""
    order = list(dict.fromkeys(job for job, _ in run.moments.worked))
    return "one is the last" if order == ["three", "two", "one"] else None


def deploys_once(run: AgentVariation) -> str | None:
    times = Counter(run.moments.worked)
    return "deployed again" if max(times.values(), default=0) > 1 else None


@sometimes
def is_asked(run: AgentVariation) -> str | None:
    return "asked" if run.asks else None


OWN = "tests.explore.test_agents"


def deploys(folder: Path) -> Scenario:
    (folder / "deploys.yaml").write_text(RULES)
    return load_or_fail([folder / "deploys.yaml"])[0]


def test_invariants_of_a_users_own_are_asked_and_their_cases_play_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deploys(tmp_path)
    asked = ("--invariant", f"{OWN}:deploys_once", "--invariant", f"{OWN}:is_asked")
    with pytest.raises(SystemExit) as exit_:
        main(
            [
                "explore",
                "deploys.yaml",
                "--kind",
                "crashes",
                "--executor",
                "serial",
                "--save",
                "found",
                *asked,
            ]
        )
    assert exit_.value.code == 1
    out = capsys.readouterr().out
    assert (
        f"FAILED samples/deploys[hardened] {OWN}:deploys_once\n  deployed again\n  kill after event " in out
    )
    assert f"FAILED samples/deploys[hardened] {OWN}:is_asked: no run reached it" in out
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "--replay", "found"])
    assert exit_.value.code == 1
    assert "deploys_once: deployed again" in capsys.readouterr().out


def test_an_order_is_made_as_small_as_one_of_engine_one(tmp_path: Path) -> None:
    own = (f"{OWN}:the_last_is_not_first",)
    drawn = Bounds(kinds=("orders",), orders=1, pct_runs=20)
    found = explore_one(deploys(tmp_path), "hardened", own=own, bounds=drawn)
    (failure,) = found.failures
    explorer = Explorer(deploys(tmp_path), "hardened", own_invariants(own))
    assert len(failure.deviations) <= 3
    for place in range(len(failure.deviations)):
        fewer = (*failure.deviations[:place], *failure.deviations[place + 1 :])
        assert explorer.breaks(failure.invariant, fewer) is None


@pytest.mark.slow
def test_a_crash_is_played_together_with_whatever_else_may_happen(tmp_path: Path) -> None:
    pays = scenario(tmp_path)
    alone = explore_one(pays, "hardened", own=(), bounds=Bounds(kinds=("crashes",), depth=2))
    both = explore_one(pays, "hardened", own=(), bounds=Bounds(kinds=("crashes", "faults"), depth=2))
    crashes, faults = both.proven["crashes"].of, both.proven["faults"].of
    assert both.beyond.pairs == Count(*[alone.beyond.pairs.of + crashes * faults] * 2)
    assert both.failures == ()


def test_tools_of_an_agent_have_a_certificate(tmp_path: Path) -> None:
    found = explore_one(scenario(tmp_path), "hardened", own=(), bounds=CRASHES)
    look, pay = found.tools
    assert (look.before, look.during, look.after, look.twice) == (
        "safe",
        "at least once",
        "safe",
        "at least once",
    )
    # Of this one a person is asked.
    assert (pay.before, pay.during, pay.after, pay.twice, pay.owners) == ("safe", "safe", "safe", None, None)


RESULTS = """
suite: samples
scenarios:
  - id: results
    title: A tool has a result for each call.
    engine: agent
    tools: {look: {description: Look., after_crash: again, results: [{result: seen}]}}
    agents: {assistant: {prompt: You work.}}
    jobs: {main: {message: Work.}}
    script: {assistant: [{tools: [{name: look}]}, {text: Done.}]}
"""


def test_a_call_for_which_a_tool_has_no_result_leaves_the_script(tmp_path: Path) -> None:
    (tmp_path / "results.yaml").write_text(RESULTS)
    found = explore_one(load_or_fail([tmp_path / "results.yaml"])[0], "hardened", own=(), bounds=CRASHES)
    assert found.failures == ()
    assert found.unknown > 0


def test_an_event_that_follows_a_call_of_which_a_person_is_asked_does_not_hide_the_question(
    tmp_path: Path,
) -> None:
    own = with_events(tmp_path, "events: [{after: {tool: pay}, push: main, message: And this.}]")
    found = explore_one(own, "hardened", own=(), bounds=CRASHES)
    assert {cell.came for cell in found.cells if cell.what in ("commit calling", "pay worked")} == {
        "asks",
        "same",
    }
    assert "agent-every-run-ends" not in {failure.invariant for failure in found.failures}
