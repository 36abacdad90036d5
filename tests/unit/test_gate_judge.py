"""Verdicts: what passes, what fails, and the sentence that says why."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from statek_sim.analysis.needs import WatchedHarness, unlimited
from statek_sim.errors import BadPolicy, BadScenario
from statek_sim.gate.judge import with_headroom
from statek_sim.gate.verdict import GateResult, LimitFigure, Verdict
from statek_sim.harness.limits import ExtensionRule, LimitName
from tests.says import line_with, says
from tests.tables import table_test
from tests.unit.gate_samples import POLICY, ROOMY, TIGHT, WORKLOADS, reasons, result, written

PRICES = """\
PROVIDER,MODEL,MODEL_FAMILY,INPUT_PRICE_PER_M,INPUT_PRICE_PER_CACHED_M,OUTPUT_PRICE_PER_M
OPENROUTER,gpt-4o,,2.50,,10.00
"""
CHAT = """\
suite: sample
scenarios:
  - id: chat
    title: Five questions, five answers
    profiles: ["1.4"]
    tags: [healthy]
    agents: {clerk: {dialog: true, chat_style: DIRECT}}
    jobs: {main: {message: hello}}
    script: {clerk: [{text: yes, repeat: 5}]}
    events:
      - {at: 1, push: main, message: one}
      - {at: 2, push: main, message: two}
      - {at: 3, push: main, message: three}
      - {at: 4, push: main, message: four}
"""
STORM = """\
scenarios:
  - id: storm
    title: Starts a reader every turn, from its second turn on
    tags: [runaway]
    goes_bad: {main: 2}
    agents: {clerk: {tools: [start_subtask]}, reader: {}}
    jobs: {main: {agent: clerk, locals: {n: 0}}}
    script:
      clerk:
        - code: |
            task = start_subtask(role="reader", id=f"scan-{n}")
            n = n + 1
          latency: 9
          repeat: 30
      reader: [{code: exit('read'), repeat: 30}]
"""


def verdict(found: GateResult, scenario: str, rule: str | None = None) -> Verdict:
    """Return the verdict on a scenario."""
    name = f"sample/{scenario}[{found.profile}]"
    return next(one for one in found.verdicts if one.scenario == name and rule in (None, one.rule))


def figure(one: Verdict, limit: LimitName) -> LimitFigure:
    return next(figure for figure in one.figures if figure.limit is limit)


def stop_rule(*more: str) -> str:
    """Return a policy of one rule: runaways are stopped, and more."""
    return "\n".join(['[[rule]]\nname = "r"\nselect = {tags = ["runaway"]}\nmust = "stop"', *more, ""])


def test_a_preset_with_room_passes(tmp_path: Path) -> None:
    found = result(tmp_path, ROOMY)
    assert found.passed
    assert [one.scenario for one in found.verdicts] == [
        "sample/useful[docs]",
        "sample/short[docs]",
        "sample/loop[docs]",
    ]


def test_a_healthy_scenario_that_is_stopped_fails_with_what_it_needs(tmp_path: Path) -> None:
    found = result(tmp_path, TIGHT)
    [reason] = reasons(found, tmp_path)
    assert says(reason, "own.env:2", "`useful`", "turn 5", "max_turns", ">= 6")
    useful = verdict(found, "useful")
    assert (useful.limit, useful.stop and useful.stop.turn) == (LimitName.MAX_TURNS, 5)


def test_every_limit_that_is_too_small_is_told(tmp_path: Path) -> None:
    found = result(tmp_path, "STATEK_MAX_EXCEPTIONS=0\nSTATEK_MAX_TURNS=4\n")
    [reason] = reasons(found, tmp_path)
    assert says(reason, "own.env:2", "`useful`", "turn 5", "max_turns", ">= 6", "max_exceptions >= 1")


def test_what_is_needed_is_the_smallest_that_passes(tmp_path: Path) -> None:
    needed = {one.limit: one.needed for one in verdict(result(tmp_path, ROOMY), "useful").figures}
    enough = "".join(f"STATEK_{limit.value.upper()}={value}\n" for limit, value in needed.items())
    assert result(tmp_path, enough).passed
    for limit, value in needed.items():
        assert value
        less = enough.replace(f"{limit.value.upper()}={value}\n", f"{limit.value.upper()}={value - 1}\n")
        failed = result(tmp_path, less).failed
        assert [one.limit for one in failed] == [limit]


def test_headroom_is_demanded_of_every_limit_or_of_some(tmp_path: Path) -> None:
    every = POLICY.replace('must = "finish"', 'must = "finish"\nheadroom_percent = 20', 1)
    [reason] = reasons(result(tmp_path, ROOMY, every), tmp_path)
    assert says(
        reason,
        "own.env:3",
        "`useful`",
        "max_consecutive_exceptions=1",
        "0 % headroom",
        "required 20 %",
        ">= 2",
    )
    some = every.replace("= 20", "= {max_turns = 40}")
    assert result(tmp_path, ROOMY, some).passed
    assert not result(tmp_path, ROOMY, some.replace("40", "41")).passed


@table_test(("needed", "percent", "value"), [(6, 40, 10), (6, 41, 11), (1, 20, 2), (5, 0, 5), (0, 9, 0)])
def test_a_limit_with_headroom_is_the_smallest_that_has_it(needed: int, percent: int, value: int) -> None:
    assert with_headroom(needed, percent) == value
    left = LimitFigure(limit=LimitName.MAX_TURNS, value=value, used=0, needed=needed).headroom_percent
    assert left is not None
    assert left >= percent


def test_a_limit_that_the_scenario_states_itself_is_not_the_presets_business(tmp_path: Path) -> None:
    stated = WORKLOADS.replace("  - id: useful\n", "  - id: useful\n    limits: {max_turns: 6}\n")
    policy = POLICY.replace('must = "finish"', 'must = "finish"\nheadroom_percent = {max_turns = 40}', 1)
    found = result(tmp_path, TIGHT, policy, workloads=stated)
    assert found.passed
    assert figure(verdict(found, "useful"), LimitName.MAX_TURNS).stated


@pytest.mark.parametrize(
    ("turns", "extension", "needed", "passes"),
    [(8, 0, 8, True), (7, 0, 8, False), (3, 0.5, 3, True), (2, 0.5, 3, False)],
)
def test_completions_extend_what_a_preset_allows(
    tmp_path: Path, turns: int, extension: float, needed: int, *, passes: bool
) -> None:
    preset = f"STATEK_MAX_TURNS={turns}\nSTATEK_LIMIT_EXTENSION_PER_COMPLETION={extension}\n"
    found = result(tmp_path, preset, POLICY.partition("\n\n")[0], workloads=CHAT, profile="1.4")
    assert figure(verdict(found, "chat"), LimitName.MAX_TURNS).needed == needed
    assert found.passed is passes


def test_a_scenario_that_does_not_end_by_itself_fails_whatever_the_preset(tmp_path: Path) -> None:
    endless = WORKLOADS.replace("tags: [runaway]", "tags: [runaway, healthy]")
    [reason] = reasons(result(tmp_path, ROOMY, workloads=endless), tmp_path)
    assert says(reason, "`loop`", "turn 11", "max_turns", "without limits", "`main`", "ScriptExhausted")


def test_a_job_that_waits_for_ever_does_not_finish(tmp_path: Path) -> None:
    waits = """\
scenarios:
  - id: waits
    title: Waits for what never comes
    tags: [healthy]
    world: {futures: [approval]}
    agents: {clerk: {tools: [wait_for]}}
    jobs: {main: {locals: {wait: {$world: "future:approval"}}}}
    script: {clerk: [{code: "x = wait_for('approval')\\nprint(x)"}]}
"""
    found = result(tmp_path, ROOMY, POLICY.partition("\n\n")[0], workloads=waits)
    assert says(reasons(found, tmp_path)[0], "`waits`", "job `main` waits")


# -- runaways ------------------------------------------------------------------------------------------------------


def test_a_runaway_that_no_limit_stops_fails(tmp_path: Path) -> None:
    found = result(tmp_path, "STATEK_MAX_TURNS=100\nSTATEK_MAX_TOKEN_USAGE=1000000\n")
    [reason] = reasons(found, tmp_path)
    assert says(reason, "own.env:1", "not stop", "`loop`", "`main`", "40 turns")


def test_turns_and_tokens_are_counted_from_the_turn_on_which_a_job_goes_bad(tmp_path: Path) -> None:
    found = result(tmp_path, ROOMY, stop_rule("within_turns = 9"))
    assert found.passed
    burnt = verdict(found, "loop").burnt
    assert burnt is not None
    # Ten turns are allowed, so eleven are taken: the third to the eleventh are bad.
    assert burnt.turns == 9
    [reason] = reasons(result(tmp_path, ROOMY, stop_rule("within_turns = 8")), tmp_path)
    assert says(reason, "max_turns", "used", "9 turns", f"{burnt.tokens:,} tokens", "allowed: 8 turns")
    assert result(tmp_path, ROOMY, stop_rule(f"within_tokens = {burnt.tokens}")).passed
    assert not result(tmp_path, ROOMY, stop_rule(f"within_tokens = {burnt.tokens - 1}")).passed


def test_cost_is_counted_by_the_policys_price_files(tmp_path: Path) -> None:
    (tmp_path / "prices").mkdir()
    written(tmp_path / "prices", "all.csv", PRICES)
    policy = 'prices = "prices"\n' + stop_rule('within_cost = "1.00"')
    found = result(tmp_path, ROOMY, policy)
    burnt = verdict(found, "loop").burnt
    assert burnt is not None
    assert burnt.cost is not None
    assert 0 < burnt.cost < 1
    exact = policy.replace("1.00", f"{burnt.cost:f}")
    assert result(tmp_path, ROOMY, exact).passed
    [reason] = reasons(result(tmp_path, ROOMY, policy.replace("1.00", "0.0001")), tmp_path)
    assert says(reason, "allowed", "cost", "0.0001")


def test_a_model_without_a_price_is_told_with_the_scenarios_place(tmp_path: Path) -> None:
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "other.csv").write_text(
        "PROVIDER,MODEL,MODEL_FAMILY,INPUT_PRICE_PER_M,INPUT_PRICE_PER_CACHED_M,OUTPUT_PRICE_PER_M\nelsewhere,other,other,1,1,2\n"
    )
    policy = 'prices = "prices"\n' + stop_rule('within_cost = "1.00"')
    with pytest.raises(BadScenario, match=line_with("workloads.yaml:14", "'loop'", "price", "'gpt-4o'")):
        result(tmp_path, ROOMY, policy)


def test_what_a_bad_job_starts_counts_with_it(tmp_path: Path) -> None:
    found = result(tmp_path, "STATEK_MAX_TURNS=4\n", stop_rule(), workloads=STORM)
    [storm] = found.verdicts
    assert storm.stop is not None
    assert storm.burnt is not None
    assert (storm.passed, storm.stop.job, storm.stop.turn) == (True, "main", 5)
    # The second to the fifth turn, and one of each reader that came after the second reply arrived.
    assert storm.burnt.turns == 4 + 3


def test_the_stop_that_is_told_is_that_of_a_job_that_goes_bad(tmp_path: Path) -> None:
    two = """\
suite: sample
scenarios:
  - id: two
    title: One loops, and another works on for longer than it may
    tags: [runaway]
    goes_bad: {bad: 1}
    agents: {clerk: {}}
    jobs: {bad: {}, good: {at: 100}}
    script: {clerk: [{code: print(1), repeat: forever}]}
"""
    [one] = result(tmp_path, "STATEK_MAX_TURNS=2\n", stop_rule(), workloads=two).verdicts
    assert says(one.reason, "`bad`", "`two`", "turn 3", "max_turns", "used", "3 turns")
    assert "`good`" not in one.reason


def test_a_turn_that_is_never_reached_is_refused(tmp_path: Path) -> None:
    late = WORKLOADS.replace("{main: 3}", "{main: 41}")
    with pytest.raises(BadScenario, match=line_with("workloads.yaml:14", "'loop'", "goes_bad {main: 41}")):
        result(tmp_path, ROOMY, workloads=late)


def test_a_runaway_that_is_stopped_before_it_goes_bad_has_burnt_nothing(tmp_path: Path) -> None:
    found = result(tmp_path, "STATEK_MAX_TURNS=1\n", stop_rule("within_turns = 1"))
    burnt = found.verdicts[0].burnt
    assert found.passed
    assert burnt is not None
    assert burnt.turns == 0


def test_counting_needs_a_turn_to_count_from(tmp_path: Path) -> None:
    silent = WORKLOADS.replace("    goes_bad: {main: 3}\n", "")
    assert result(tmp_path, ROOMY, stop_rule(), workloads=silent).passed
    with pytest.raises(BadScenario, match=line_with("rule 'r'", "expected goes_bad")):
        result(tmp_path, ROOMY, stop_rule("within_turns = 8"), workloads=silent)


# -- claims, and which scenarios -----------------------------------------------------------------------------------


def test_a_claim_that_leaks_fails(tmp_path: Path) -> None:
    rule = '[[rule]]\nname = "claims"\nselect = {}\nclaims_leak = false\n'
    found = result(tmp_path, ROOMY, rule)
    assert len(found.verdicts) == 4
    [reason] = reasons(found, tmp_path)
    assert says(reason, "own.env:1", "`hoard`", "leaks", "invoice-1")
    assert found.failed[0].leaked == ("invoice-1",)


def test_a_rule_that_judges_nothing_is_refused(tmp_path: Path) -> None:
    none = POLICY.replace('tags = ["healthy"]', 'tags = ["healthy"], without_tags = ["healthy"]')
    with pytest.raises(BadPolicy, match=line_with("policy.toml:1", "'work finishes'", "none", "4 scenarios")):
        result(tmp_path, ROOMY, none)


@pytest.mark.parametrize(
    ("select", "facts"),
    [
        ('tags = ["healty"]', "tag 'healty' 'healthy'?"),
        ('tags = ["xyz"]', "tag 'xyz' --policy"),
        ('scenarios = ["usefull"]', "scenario 'usefull' 'useful'?"),
        ('scenarios = ["sample/usefull"]', "scenario 'sample/usefull' 'sample/useful'?"),
    ],
)
def test_names_that_nothing_has_are_refused(tmp_path: Path, select: str, facts: str) -> None:
    place = f"{tmp_path}/policy.toml:1"
    with pytest.raises(BadPolicy, match=line_with(place, "'work finishes'", *facts.split())):
        result(tmp_path, ROOMY, POLICY.replace('tags = ["healthy"]', select))


@pytest.mark.parametrize(
    ("select", "facts"),
    [
        ('tags = ["quick"]', "tag 'quick'; sample/short"),
        ('scenarios = ["useful", "short"]', "'short'; sample/short"),
        ('tags = ["healthy", "runaway"], without_tags = ["healthy"]', "none of the 2 scenarios; sample/loop"),
        ('tags = ["healthy", "late"]', "tag 'late'; sample/short and 1 more"),
    ],
)
def test_scenarios_of_another_profile_are_not_said_to_be_missing(
    tmp_path: Path, select: str, facts: str
) -> None:
    workloads = WORKLOADS
    for name in ("short", "loop"):
        workloads = workloads.replace(f"id: {name}\n", f'id: {name}\n    profiles: ["1.4"]\n')
    workloads = workloads.replace("quick]", "quick, late]").replace("[runaway]", "[runaway, late]")
    workloads = workloads.replace("[healthy]", "[healthy, runaway]")
    expected = (
        f"{tmp_path}/policy.toml:1",
        "'work finishes'",
        *facts.split("; "),
        "--profile 1.4",
        "--policy",
    )
    with pytest.raises(BadPolicy, match=line_with(*expected)):
        result(tmp_path, ROOMY, POLICY.replace('tags = ["healthy"]', select), workloads=workloads)


def test_a_scenario_is_judged_by_every_rule_that_names_it(tmp_path: Path) -> None:
    named = POLICY.replace('tags = ["healthy"]', 'scenarios = ["short", "sample/useful"]')
    quick = '\n[[rule]]\nname = "quick work"\nselect = {tags = ["quick"]}\nmust = "finish"\n'
    found = result(tmp_path, ROOMY, named + quick)
    assert [one.rule for one in found.verdicts if one.scenario == "sample/short[docs]"] == [
        "work finishes",
        "quick work",
    ]


def test_a_long_run_keeps_the_largest_of_all_checks_of_a_kind() -> None:
    harness = WatchedHarness(unlimited(0.0), ExtensionRule.ADDITIVE)
    for turn in range(100):
        harness.check_before_step(
            SimpleNamespace(
                num_turns=turn, exception_count=turn % 3, max_consecutive_exceptions=0, num_completions=None
            )
        )
    (passed,) = harness.checks().passed
    assert (passed.num_turns, passed.exception_count) == (99, 2)
