"""What one crash may add, as a rule of a policy."""

from __future__ import annotations

import json
import shlex
from decimal import Decimal
from pathlib import Path

import pytest

from statek_sim.cli import main
from statek_sim.errors import BadScenario
from statek_sim.executors.limits import parse_watchdog
from statek_sim.gate import trial
from statek_sim.gate.gate import judge_presets
from statek_sim.gate.policy_file import read_policy
from statek_sim.gate.verdict import CrashAdded, CrashPlace
from statek_sim.scenario.load import load_or_fail
from tests.unit.gate_samples import ROOMY, TIGHT, WORKLOADS, planned, result, written
from tests.unit.test_gate_judge import PRICES
from tests.unit.test_gate_policy import problems

CHEAP = '[[rule]]\nname = "cheap"\nselect = {scenarios = ["short"]}\n'
AGENT = """\
suite: sample
scenarios:
  - id: short
    title: Engine two
    engine: agent
    agents: {clerk: {}}
    script: {clerk: [{text: done}]}
"""


def crash(folder: Path, rule: str, preset: str = ROOMY, scenario: str = "short") -> CrashAdded:
    found = result(folder, preset, CHEAP.replace("short", scenario) + rule)
    assert found.verdicts[0].crash is not None
    return found.verdicts[0].crash


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    return int(ended.value.code or 0), capsys.readouterr().out


def test_the_most_that_one_crash_adds_is_allowed_and_one_token_less_is_not(tmp_path: Path) -> None:
    most = crash(tmp_path, "max_crash_tokens = 0").tokens
    assert most > 0
    assert result(tmp_path, ROOMY, f"{CHEAP}max_crash_tokens = {most}").passed
    assert not result(tmp_path, ROOMY, f"{CHEAP}max_crash_tokens = {most - 1}").passed


def test_a_crash_after_a_reply_that_is_not_stored_yet_adds_most(tmp_path: Path) -> None:
    added = crash(tmp_path, "max_crash_tokens = 0")
    assert added.tokens_at.what == "LLMReplied of main"
    assert (added.places > 10, added.cost) == (True, None)


def test_the_verdict_names_a_command_that_plays_the_crash_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (verdict,) = result(tmp_path, ROOMY, f"{CHEAP}max_crash_tokens = 0").failed
    assert verdict.crash is not None
    _, command, _ = verdict.reason.rsplit("`", 2)
    name, *words = shlex.split(command)
    assert (name, words[-1]) == ("statek-sim", verdict.crash.tokens_at.number)
    code, out = run(capsys, *words, "--max-crash-tokens", str(verdict.crash.tokens - 1))
    assert code == 1
    assert f"short: this crash adds {verdict.crash.tokens:,} tokens and a cost that nobody knows" in out
    assert f"FAILED short: one crash adds {verdict.crash.tokens:,} tokens" in out
    assert run(capsys, *words, "--max-crash-tokens", str(verdict.crash.tokens))[0] == 0


def test_a_limit_of_the_preset_bounds_what_a_crash_can_add(tmp_path: Path) -> None:
    roomy = crash(tmp_path, "max_crash_tokens = 0", scenario="loop")
    tight = crash(tmp_path, "max_crash_tokens = 0", TIGHT, "loop")
    assert 0 < tight.tokens < roomy.tokens


def test_cost_is_counted_with_the_price_files(tmp_path: Path) -> None:
    (tmp_path / "prices").mkdir()
    written(tmp_path / "prices", "prices.csv", PRICES)
    policy = f'prices = "prices"\n{CHEAP}max_crash_cost = "%s"\n'
    (verdict,) = result(tmp_path, ROOMY, policy % "0").failed
    assert verdict.crash is not None
    cost = verdict.crash.cost
    assert cost is not None
    assert cost > 0
    assert f"adds a cost of {cost:f}; allowed 0; `statek-sim explore" in verdict.reason
    assert f"--prices {tmp_path / 'prices'}` plays it" in verdict.reason
    assert result(tmp_path, ROOMY, policy % f"{cost:f}").passed


def test_nothing_is_killed_for_a_policy_that_does_not_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "crash_added", None)
    found = result(tmp_path, ROOMY)
    assert {one.crash for one in found.verdicts} == {None}


def test_all_crashes_of_a_scenario_are_one_piece_of_work_to_the_watchdog(tmp_path: Path) -> None:
    scenarios = load_or_fail([written(tmp_path, "workloads.yaml", WORKLOADS)])
    plan = planned(tmp_path, ROOMY, f"{CHEAP}max_crash_tokens = 5000")
    watched = judge_presets(plan, scenarios, profile="docs", watchdog=parse_watchdog("cpu=20,wall=60"))
    assert watched == judge_presets(plan, scenarios, profile="docs")


def test_engine_agent_is_refused_with_what_to_do(tmp_path: Path) -> None:
    told = (
        r"workloads\.yaml:3: scenario 'short': what a crash adds is judged for engine statek only; leave this "
        r"scenario out of the rule's select$"
    )
    with pytest.raises(BadScenario, match=told):
        result(tmp_path, ROOMY, f"{CHEAP}max_crash_tokens = 5", workloads=AGENT)


def test_a_policy_says_both_bounds_and_costs_need_prices(tmp_path: Path) -> None:
    text = f'prices = "prices"\n{CHEAP}max_crash_tokens = 5\nmax_crash_cost = "0.05"\n'
    (rule,) = read_policy(written(tmp_path, "policy.toml", text)).rules
    assert (rule.max_crash_tokens, rule.most_crash_cost, rule.must) == (5, Decimal("0.05"), None)
    assert problems(tmp_path, f'{CHEAP}max_crash_cost = "0.05"\n') == [
        "policy.toml:4: rule 'cheap': max_crash_cost needs prices; say prices = FOLDER above the rules"
    ]


@pytest.mark.parametrize(
    ("place", "number", "said"),
    [
        (CrashPlace(17, 0, "LLMReplied of main"), "17", "event 17 (LLMReplied of main)"),
        (CrashPlace(3, 2), "3+2", "event 3+2"),
    ],
)
def test_a_place_is_told_as_the_command_takes_it(place: CrashPlace, number: str, said: str) -> None:
    assert (place.number, str(place)) == (number, said)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kill", "x"), "--kill 'x': expected the number of an event, like 17, or 17+2"),
        (("--kill", "5", "--kind", "orders"), "--kill is one crash; leave --kind out"),
        (("--kill", "9999"), "--kill 9999: no scenario that was chosen has this place"),
    ],
)
def test_a_crash_that_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    path = written(tmp_path, "workloads.yaml", WORKLOADS)
    with pytest.raises(SystemExit) as ended:
        main(["explore", str(path), "--select", "short", "--processes", "1", *words])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_the_json_of_the_gate_has_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "workloads.yaml", WORKLOADS)
    policy = written(tmp_path, "policy.toml", f"{CHEAP}max_crash_tokens = 0\n")
    out = tmp_path / "gate.json"
    code, _ = run(capsys, "gate", "local", str(path), "--policy", str(policy), "--json", str(out))
    (verdict,) = json.loads(out.read_text())["verdicts"]
    assert code == 1
    assert verdict["crash"]["tokens_at"]["what"] == "LLMReplied of main"
