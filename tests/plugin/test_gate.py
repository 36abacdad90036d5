"""`pytest --statek-gate`: verdicts on presets as test items."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from statek_sim.cli import main
from tests.unit.gate_samples import POLICY, ROOMY, TIGHT, WORKLOADS

Write = Callable[[str, str], Path]

USEFUL = "work finishes::sample/useful[docs]"
OPTIONS = ("-ostatek_gate_policy=gate/policy.toml", "-ostatek_gate_scenarios=gate/workloads.yaml")


@pytest.fixture(autouse=True)
def project(write: Write) -> None:
    """A project with two presets, a policy and workloads."""
    write("presets/roomy.env", ROOMY)
    write("presets/tight.env", TIGHT)
    write("gate/policy.toml", POLICY)
    write("gate/workloads.yaml", WORKLOADS)


def write_baseline() -> None:
    """Write `base.json`: the figures of the roomy preset."""
    on = ("presets/roomy.env", "--policy", "gate/policy.toml", "gate/workloads.yaml")
    with pytest.raises(SystemExit) as done:
        main(("gate", *on, "--baseline", "base.json", "--update-baseline"))
    assert done.value.code == 0


def test_every_rule_and_scenario_of_a_preset_is_an_item(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-gate=presets/roomy.env", "--collect-only", "-q", *OPTIONS)
    assert [line for line in result.outlines if "::" in line] == [
        f"statek_gate/presets/roomy.env::{USEFUL}",
        "statek_gate/presets/roomy.env::work finishes::sample/short[docs]",
        "statek_gate/presets/roomy.env::loops stop::sample/loop[docs]",
    ]


def test_without_a_setting_the_scenarios_of_the_run_are_judged(pytester: pytest.Pytester) -> None:
    named = ("--statek-scenarios=gate/workloads.yaml", "-o", "statek_gate_policy=gate/policy.toml")
    result = pytester.runpytest("--statek-gate=presets/roomy.env", *named, "--collect-only", "-q")
    judged = [line for line in result.outlines if line.startswith("statek_gate/")]
    assert "statek_gate/presets/roomy.env::loops stop::sample/loop[docs]" in judged
    assert len(judged) == 3


def test_a_failure_is_the_sentence_without_a_traceback(pytester: pytest.Pytester) -> None:
    gates = ("--statek-gate=presets/roomy.env", "--statek-gate=presets/tight.env")
    result = pytester.runpytest(*gates, *OPTIONS)
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*work finishes::sample/useful?docs?*",
            "presets/tight.env:2: `presets/tight.env`: stopped `useful` on turn 5 by max_turns; needs >= 6",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*VerdictFailed*")


def test_verdicts_are_shared_out_over_workers(pytester: pytest.Pytester) -> None:
    gates = ("--statek-gate=presets/roomy.env", "--statek-gate=presets/tight.env")
    pytester.runpytest(*gates, *OPTIONS, "-n", "2").assert_outcomes(passed=5, failed=1)


@pytest.mark.parametrize(
    ("expression", "count"),
    [("useful", 2), ("tight and finishes", 2), ("quick", 2), ("runaway", 2), ("nothing", 0)],
)
def test_items_are_selected_by_preset_rule_scenario_and_tag(
    pytester: pytest.Pytester, expression: str, count: int
) -> None:
    gates = ("--statek-gate=presets/roomy.env", "--statek-gate=presets/tight.env")
    result = pytester.runpytest(*gates, *OPTIONS, "-k", expression, "--collect-only", "-q")
    assert len([line for line in result.outlines if "::" in line]) == count


def test_what_failed_last_is_run_again_alone(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--statek-gate=presets/tight.env", *OPTIONS).assert_outcomes(passed=2, failed=1)
    again = pytester.runpytest("--statek-gate=presets/tight.env", *OPTIONS, "--lf")
    again.assert_outcomes(failed=1, deselected=2)


def test_without_paths_only_verdicts_run_and_with_paths_they_are_added(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    gate = ("--statek-gate=presets/roomy.env", *OPTIONS)
    pytester.runpytest(*gate).assert_outcomes(passed=3)
    pytester.runpytest("test_own.py", *gate).assert_outcomes(passed=4)


def test_scenarios_and_verdicts_run_together(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    result = pytester.runpytest(
        "--statek-gate=presets/roomy.env", *OPTIONS, "--statek-scenarios=gate", "--collect-only", "-q"
    )
    ids = [line for line in result.outlines if "::" in line]
    assert len(ids) == 8 + 3
    assert not [one for one in ids if "test_own" in one]


def test_the_configuration_file_may_say_all_of_it(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\nstatek_gate = presets/tight.env\n    presets/roomy.env\n"
        "statek_gate_policy = gate/policy.toml\nstatek_gate_scenarios = gate\n"
    )
    pytester.makepyfile(test_own="def test_own(): pass")
    pytester.runpytest().assert_outcomes(passed=6, failed=1)
    # As with testpaths: a path on the command line is all that runs.
    pytester.runpytest("test_own.py").assert_outcomes(passed=1)


def test_the_profile_of_the_run_is_the_one_judged_under(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-gate=presets/roomy.env", *OPTIONS, "--statek-profile=1.4", "-v")
    result.stdout.fnmatch_lines(["*useful?1.4?*PASSED*"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--statek-gate=nothing.env",), "*preset 'nothing.env': no such file*"),
        (("--statek-gate=presets/roomy.env", "-ostatek_gate_policy=no.toml"), "*no.toml: no such file*"),
    ],
)
def test_a_mistake_ends_the_run_in_one_line(
    pytester: pytest.Pytester, arguments: tuple[str, ...], problem: str
) -> None:
    result = pytester.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: statek: {problem}"])


def test_a_rule_that_judges_nothing_is_a_collection_error(pytester: pytest.Pytester, write: Write) -> None:
    write("gate/policy.toml", POLICY.replace('"healthy"', '"helthy"'))
    result = pytester.runpytest("--statek-gate=presets/roomy.env", *OPTIONS)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["gate/policy.toml:1: rule 'work finishes': no scenario has the tag 'helthy'*"]
    )


def test_what_is_noticed_about_a_preset_is_in_the_header(pytester: pytest.Pytester, write: Write) -> None:
    write("presets/roomy.env", "STATEK_MAX_TURNS=10\nSTATEK_MAX_EXCEPTIONS=1\n")
    result = pytester.runpytest("--statek-gate=presets/roomy.env", *OPTIONS)
    result.stdout.fnmatch_lines(
        ["statek gate: presets/roomy.env:1: STATEK_MAX_CONSECUTIVE_EXCEPTIONS=1 has no effect*"]
    )


def test_what_is_worse_than_the_baseline_fails(pytester: pytest.Pytester, write: Write) -> None:
    write_baseline()
    options = ("--statek-gate=presets/roomy.env", *OPTIONS, "-ostatek_gate_baseline=base.json")
    pytester.runpytest(*options).assert_outcomes(passed=6)
    write("presets/roomy.env", ROOMY.replace("MAX_TURNS=10", "MAX_TURNS=20"))
    result = pytester.runpytest(*options, "-n", "1")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(
        ["presets/roomy.env:1: `presets/roomy.env`: `loop`: 19 turns since it went bad, 9 in the baseline*"]
    )


def test_what_has_vanished_from_the_baseline_fails(pytester: pytest.Pytester, write: Write) -> None:
    write_baseline()
    write("gate/workloads.yaml", WORKLOADS.replace("id: short", "id: brief"))
    pytester.makeini("[pytest]\nstatek_gate_baseline = base.json\n")
    result = pytester.runpytest("--statek-gate=presets/roomy.env", *OPTIONS)
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*`short`: in the baseline, but not checked*"])


def test_a_baseline_that_is_none_ends_the_run_in_one_line(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-gate=presets/roomy.env", *OPTIONS, "-ostatek_gate_baseline=no.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: statek: no.json: no such file or folder*"])


HANGING = """\
suite: sample
defaults: {profiles: [docs], agents: {worker: {tools: ["hanging_tools:hang"]}}}
scenarios:
  - {id: useful, title: Hangs, tags: [work], script: {worker: [{code: hang()}]}, expect: {}}
  - {id: short, title: Short, tags: [work], script: {worker: [{code: exit(1)}]}, expect: {jobs: {main: {exit: 1}}}}
"""
FINISHES = """\
[[rule]]
name = "work finishes"
select = {tags = ["work"]}
must = "finish"

[[rule]]
name = "work finishes again"
select = {tags = ["work"]}
must = "finish"
"""


def test_a_scenario_that_hangs_fails_its_rules_and_is_killed_once(
    pytester: pytest.Pytester, write: Write
) -> None:
    write("gate/workloads.yaml", HANGING)
    write("gate/policy.toml", FINISHES)
    calls = pytester.path / "calls.txt"
    pytester.makepyfile(
        hanging_tools=f"""
        from pathlib import Path

        from statek_sim import tool

        @tool
        def hang(**kwargs):
            with Path({str(calls)!r}).open("a") as written:
                written.write("called\\n")
            while True:
                pass
        """
    )
    result = pytester.runpytest_subprocess(
        "--statek-gate=presets/roomy.env", *OPTIONS, "-ostatek_watchdog=cpu=1", "-p", "no:randomly"
    )
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        ["*`sample/useful?docs?` was killed by the watchdog: 1 s CPU in turn 1 of job main*"]
    )
    # Two rules fail by it, and it was run for them once: no second one is waited for.
    assert calls.read_text().splitlines() == ["called"]
