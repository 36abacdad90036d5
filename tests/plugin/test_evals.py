"""`pytest --statek-evals`: evals as test items."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from statek_sim.cli.app import main
from statek_sim.evals.arms import Arm, named_after, parse_arms
from statek_sim.evals.baseline import baseline_text
from statek_sim.evals.experiment import Experiment, run_batch
from statek_sim.evals.profile import load_profile
from statek_sim.evals.suite import load_suite
from tests.evals.test_writing import GOOD

Write = Callable[[str, str], Path]

MODEL = "ministral-3-8b-instruct"
RUN = ("--statek-evals=evals", f"-ostatek_evals_model={MODEL}", "-ostatek_evals_baseline=base.json")
LOOKS = 'plan: [{call: look, with: {name: "{name}"}}, {answer: X-1}]'
TWO = GOOD + GOOD.removeprefix("evals:\n").replace("id: one", "id: two").replace("tier: easy", "tier: hard")


@pytest.fixture(autouse=True)
def project(write: Write) -> None:
    """A project with two evals of its own, and a test."""
    write("evals/mine.yaml", TWO)
    write("test_own.py", "def test_own(): pass")


def ids(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def write_baseline(arms: Sequence[Arm], seeds: int = 4) -> None:
    """Write `base.json`: what the model makes of the evals of the project."""
    suite, profile = load_suite(["evals"]), load_profile(MODEL)
    outcomes = [one for scenario in suite for one in run_batch(scenario, 0, seeds, arms, profile)]
    experiment = Experiment(suite=suite, model=profile, arms=tuple(arms), seeds=seeds)
    Path("base.json").write_text(baseline_text(experiment, outcomes), "utf-8")


def again(command: str) -> int:
    """Return the exit code of a `statek-sim` command that a failure printed."""
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command)[1:])
    return int(ended.value.code or 0)


# -- scripts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["--statek-evals=evals", "--statek-evals=evals/mine.yaml"])
def test_every_eval_is_an_item(pytester: pytest.Pytester, folder: str) -> None:
    result = pytester.runpytest(folder, "--collect-only", "-q")
    assert ids(result) == ["evals/mine.yaml::one", "evals/mine.yaml::two"]
    pytester.runpytest(folder).assert_outcomes(passed=2)


def test_a_folder_may_stand_behind_the_option(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--statek-evals", "evals").assert_outcomes(passed=2)


def test_the_built_in_evals_are_those_of_the_command(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-evals", "--collect-only", "-q")
    built_in = load_suite([Path(__file__).parents[2] / "scenarios" / "evals"])
    assert [one.rpartition("::")[2] for one in ids(result)] == [one.id for one in built_in]
    assert ids(result)[0].startswith("statek_suites/evals/easy.yaml::")


def test_a_wrong_script_that_passes_fails_the_item_with_a_command_that_shows_it(
    pytester: pytest.Pytester, write: Write
) -> None:
    write("evals/mine.yaml", TWO.replace("plan: [{answer: X-1}]", LOOKS, 1))
    result = pytester.runpytest("--statek-evals=evals", "-ostatek_evals_seeds=2")
    result.assert_outcomes(passed=1, failed=1)
    said = "evals/mine.yaml:2: eval 'one': script 'none' on seed {}: passes, but should fail"
    command = "statek-sim evals check evals/mine.yaml --eval one --seeds 2"
    result.stdout.fnmatch_lines([said.format(0), said.format(1), "", command], consecutive=True)
    result.stdout.no_fnmatch_line("*Traceback*")
    assert again(command) == 1


def test_an_ideal_script_that_fails_is_told_with_what_is_missing(
    pytester: pytest.Pytester, write: Write
) -> None:
    write("evals/mine.yaml", TWO.replace("value: X-1", "value: X-2", 1))
    result = pytester.runpytest("--statek-evals=evals", "-ostatek_evals_seeds=1")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["evals/mine.yaml:2: eval 'one': script 'ideal' on seed 0: the answer does not cite 'X-2'"]
    )


def test_mistakes_in_a_file_are_one_collection_error(pytester: pytest.Pytester, write: Write) -> None:
    write("evals/bad.yaml", GOOD.replace("id: one", "id: bad").replace("tier: easy", "tier: simple"))
    result = pytester.runpytest("--statek-evals=evals")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["evals/bad.yaml:3:*tier: expected 'easy', 'medium' or 'hard'*"])


@pytest.mark.parametrize(("word", "count"), [("one", 1), ("hard", 1), ("single-call", 2), ("nothing", 0)])
def test_items_are_selected_by_id_tier_and_capability(
    pytester: pytest.Pytester, word: str, count: int
) -> None:
    result = pytester.runpytest("--statek-evals=evals", "-k", word, "--collect-only", "-q")
    assert len(ids(result)) == count


def test_without_paths_only_evals_run_and_with_paths_they_are_added(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--statek-evals=evals").assert_outcomes(passed=2)
    pytester.runpytest("test_own.py", "--statek-evals=evals").assert_outcomes(passed=3)


@pytest.mark.parametrize("option", ["--statek-evals=evals", "-ostatek_evals_seeds=1", "-q"])
def test_an_eval_is_run_by_its_node_id(pytester: pytest.Pytester, option: str) -> None:
    result = pytester.runpytest("evals/mine.yaml::two", "--collect-only", "-q", option)
    assert "evals/mine.yaml::one" not in ids(result)
    pytester.runpytest("evals/mine.yaml::two", option).assert_outcomes(passed=1)
    pytester.runpytest("evals/mine.yaml", option).assert_outcomes(passed=2)


@pytest.mark.usefixtures("suite")
def test_scenarios_and_evals_run_together(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios", "--statek-evals=evals")
    result.assert_outcomes(passed=5, failed=1)


def test_what_failed_last_is_run_again_alone(pytester: pytest.Pytester, write: Write) -> None:
    write("evals/mine.yaml", TWO.replace("value: X-1", "value: X-2", 1))
    pytester.runpytest("--statek-evals=evals").assert_outcomes(passed=1, failed=1)
    pytester.runpytest("--statek-evals=evals", "--lf").assert_outcomes(failed=1, deselected=1)


# -- a model ----------------------------------------------------------------------------------------------------


def test_a_model_is_held_against_a_baseline_in_each_of_its_arms(pytester: pytest.Pytester) -> None:
    write_baseline(parse_arms(["full", "bare"]))
    result = pytester.runpytest(*RUN, "-v")
    result.assert_outcomes(passed=4)
    assert [line.split(" ")[0] for line in ids(result)] == [
        f"evals/mine.yaml::{name}[{arm}]" for name in ("one", "two") for arm in ("full", "bare")
    ]
    result.stdout.fnmatch_lines([f"statek evals: {MODEL} in arms full, bare, compared with base.json"])
    pytester.runpytest(*RUN, "-ostatek_evals_arm=bare").assert_outcomes(passed=2)


def test_fewer_runs_that_are_right_fail_the_item_with_seed_problem_and_command(
    pytester: pytest.Pytester, write: Write
) -> None:
    write_baseline([named_after(())])
    write("evals/mine.yaml", TWO.replace("value: X-1", "value: X-2"))
    result = pytester.runpytest(*RUN)
    result.assert_outcomes(failed=2)
    command = (
        f"statek-sim evals run evals/mine.yaml --eval one --model {MODEL} --arms bare --seeds 4 "
        "--baseline base.json"
    )
    result.stdout.fnmatch_lines(
        [
            "one [[]bare]: 1 of 4 passed before, 0 now; failed now: seeds 2",
            "  seed 2: the answer does not cite 'X-2'",
            "base.json [[]bare]: of 4 runs 1 failed that passed before, 0 passed that failed before (p *",
            "",
            command,
        ],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    assert again(f"{command} --executor serial") == 1


@pytest.mark.slow  # workers of pytest-xdist load everything anew
def test_evals_are_shared_out_over_workers(pytester: pytest.Pytester, write: Write) -> None:
    write_baseline(parse_arms(["full", "bare"]), seeds=1)
    pytester.runpytest(*RUN, "-n", "2").assert_outcomes(passed=4)
    write("evals/mine.yaml", TWO.replace("value: X-1", "value: X-2", 1))
    result = pytester.runpytest("--statek-evals=evals", "-ostatek_evals_seeds=1", "-n", "2")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["evals/mine.yaml:2: eval 'one': script 'ideal' on seed 0: the answer does not*"]
    )


def test_fewer_seeds_than_the_baseline_has_are_run_when_they_are_asked_for(
    pytester: pytest.Pytester, write: Write
) -> None:
    write_baseline([named_after(())])
    write("evals/mine.yaml", TWO.replace("value: X-1", "value: X-2"))
    result = pytester.runpytest(*RUN, "-ostatek_evals_seeds=1")
    result.stdout.fnmatch_lines([f"statek evals: {MODEL} in arms bare on seeds below 1, compared with *"])
    result.stdout.fnmatch_lines(["base.json [[]bare]: of 1 runs 1 failed that passed before, *"])
    # The command runs all seeds: fewer than a baseline has do not hold it.
    result.stdout.fnmatch_lines(["statek-sim evals run * --seeds 4 --baseline base.json"])


def test_evals_that_the_baseline_has_and_nobody_finds_are_a_collection_error(
    pytester: pytest.Pytester, write: Write
) -> None:
    write_baseline([named_after(())], seeds=1)
    write("evals/mine.yaml", GOOD)
    result = pytester.runpytest(*RUN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["base.json: evals not found under --statek-evals: two; run all evals *"])
    write("evals/mine.yaml", TWO)
    pytester.runpytest(*RUN, "-k", "one").assert_outcomes(passed=1, deselected=1)


def test_what_the_baseline_does_not_know_fails(pytester: pytest.Pytester, write: Write) -> None:
    write_baseline([named_after(())])
    result = pytester.runpytest(*RUN, "-ostatek_evals_seeds=5")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "evals/mine.yaml:2: eval 'one': base.json contains 4 seeds for it in arm 'bare', expected 5; rewrite it*"
        ]
    )
    write("evals/mine.yaml", TWO + GOOD.removeprefix("evals:\n").replace("id: one", "id: new"))
    result = pytester.runpytest(*RUN)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*eval 'new': base.json contains 0 seeds for it in arm 'bare', expected some*"]
    )


def test_the_configuration_file_may_say_all_of_it(pytester: pytest.Pytester) -> None:
    write_baseline(parse_arms(["full", "bare"]), seeds=2)
    pytester.makeini(
        f"[pytest]\nstatek_evals = evals\nstatek_evals_model = {MODEL}\nstatek_evals_baseline = base.json\n"
        "statek_evals_seeds = 2\nstatek_evals_arm = bare\n"
    )
    result = pytester.runpytest("--collect-only", "-q")
    assert [one for one in ids(result) if "evals" in one] == [
        "evals/mine.yaml::one[bare]",
        "evals/mine.yaml::two[bare]",
    ]
    pytester.runpytest().assert_outcomes(passed=3)
    # As with testpaths: a path on the command line is all that runs.
    pytester.runpytest("test_own.py").assert_outcomes(passed=1)


# -- a policy ---------------------------------------------------------------------------------------------------


RULE = '[[rule]]\nname = "{name}"\narm = "{arm}"\n{demand}\n'
JUDGED = (*RUN[:2], "-ostatek_evals_policy=rules.toml", "-ostatek_evals_seeds=3")


def write_policy(*rules: tuple[str, str, str]) -> None:
    """Write `rules.toml` of rules with a name, an arm and a demand."""
    text = [RULE.format(name=name, arm=arm, demand=demand) for name, arm, demand in rules]
    Path("rules.toml").write_text("version = 1\n" + "".join(text), "utf-8")


def test_each_rule_of_a_policy_is_an_item_that_fails_with_its_sentence(pytester: pytest.Pytester) -> None:
    write_policy(("cheap", "bare", "measured_tokens = 1"), ("easy", "full", "completed_percent = 0"))
    result = pytester.runpytest(*JUDGED)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["rules.toml:2: rule 'cheap': [[]bare] * measured tokens per run; expected 1 or fewer"]
    )
    (command,) = {line for line in result.outlines if line.startswith("statek-sim evals run")}
    assert again(command) == 1
    assert "--policy rules.toml" in command
    pytester.runpytest(*JUDGED, "-k", "easy").assert_outcomes(passed=1, deselected=1)


def test_a_policy_and_a_baseline_are_held_together(pytester: pytest.Pytester) -> None:
    write_baseline([named_after(())], seeds=2)
    write_policy(("done", "bare", "right_percent = 0"))
    pytester.runpytest(*RUN, "-ostatek_evals_policy=rules.toml").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("rule", "arguments", "said"),
    [
        (
            ("a", "bare", "right_percent = 1"),
            ("-ostatek_evals_arm=full",),
            "rules.toml:2: rule 'a': arm 'bare' is not run; expected one of full, or statek_evals_arm",
        ),
        (
            ("a", "bare", 'right_percent = 1\nselect = {evals = ["gone"]}'),
            (),
            "rules.toml:2: rule 'a': matches none of the 2 evals, so it would always pass",
        ),
    ],
)
def test_a_rule_that_judges_no_run_is_a_collection_error(
    pytester: pytest.Pytester, rule: tuple[str, str, str], arguments: tuple[str, ...], said: str
) -> None:
    write_policy(rule)
    result = pytester.runpytest(*JUDGED, *arguments)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])


# -- mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--statek-evals=none",), "--statek-evals=none: no such file or folder; for your own evals, use"),
        (
            ("--statek-evals=evals/mine.yaml::one",),
            "*expected a file or a folder; to run one eval: `pytest evals/mine.yaml::one`",
        ),
        (
            ("--statek-evals", "test_own.py"),
            "*to check the built-in evals with these tests, write `pytest test_own",
        ),
        (
            ("--statek-evals=evals", "-ostatek_evals_seeds=many"),
            "statek_evals_seeds = many: expected a whole number",
        ),
        (
            ("--statek-evals=evals", "-ostatek_evals_seeds=0"),
            "statek_evals_seeds = 0: expected a whole number",
        ),
        (
            ("--statek-evals=evals", "-ostatek_evals_arm=full"),
            "statek_evals_arm requires statek_evals_model",
        ),
        ((*RUN[:1], RUN[2]), "statek_evals_baseline requires statek_evals_model"),
        (RUN[:2], "*: requires statek_evals_policy or statek_evals_baseline*"),
        (
            ("--statek-evals=evals", "-ostatek_evals_policy=rules.toml"),
            "statek_evals_policy requires statek_evals_model",
        ),
        ((*RUN[:2], "-ostatek_evals_policy=no.toml"), "no.toml: no such file"),
        (
            (*RUN, "-ostatek_evals_policy=test_own.py"),
            "test_own.py:1: not TOML",
        ),
        ((*RUN[:2], "-ostatek_evals_baseline=no.json"), "no.json: no such file or folder"),
        ((*RUN, "-ostatek_evals_model=gpt-9"), "unknown profile 'gpt-9'"),
        ((*RUN, "-ostatek_evals_model=lfm2.5-8b-a1b"), f"base.json: the baseline is for model '{MODEL}'"),
        ((*RUN, "-ostatek_evals_arm=resque"), "statek_evals_arm: 'resque' is not a part"),
        (
            (*RUN, "-ostatek_evals_arm=full"),
            "statek_evals_arm = full: base.json has no such arm; expected one of bare",
        ),
    ],
)
def test_a_mistake_ends_the_run_in_one_line(
    pytester: pytest.Pytester, arguments: tuple[str, ...], problem: str
) -> None:
    write_baseline([named_after(())], seeds=1)
    result = pytester.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: statek: {problem}*"])


def test_a_mistake_in_the_configuration_file_is_told_as_text_where_an_eval_is_named(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini(f"[pytest]\nstatek_evals_model = {MODEL}\n")
    result = pytester.runpytest("evals/mine.yaml::one")
    result.stdout.fnmatch_lines([f"statek: statek_evals_model = {MODEL}: requires statek_evals_policy *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*evals.py:*")


def test_a_baseline_without_arms_is_refused(pytester: pytest.Pytester) -> None:
    write_baseline([])
    result = pytester.runpytest(*RUN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: statek: base.json: the baseline contains no arms; rewrite it*"])


# -- beside scenarios -------------------------------------------------------------------------------------------

SCENARIO = "scenarios:\n  - {id: exits, title: One, agents: {w: {}}, script: {w: [{code: exit(1)}]}}\n"


def test_scenarios_of_a_folder_are_collected_without_the_evals_in_it(
    pytester: pytest.Pytester, write: Write
) -> None:
    write("evals/scenarios.yaml", SCENARIO)
    pytester.runpytest("--statek-scenarios=evals", "-k", "docs").assert_outcomes(passed=1, deselected=2)


def test_the_built_in_scenarios_are_collected_without_the_built_in_evals(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios", "--collect-only", "-q", "-k", "agent-budget-is-kept")
    assert result.ret == pytest.ExitCode.OK
    assert all("evals" not in line for line in ids(result))


def test_a_folder_of_evals_alone_is_told_to_have_no_scenarios(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios=evals")
    result.stderr.fnmatch_lines(
        ["ERROR: statek: no scenarios: evals: these are evals; check them with --statek-evals"]
    )
