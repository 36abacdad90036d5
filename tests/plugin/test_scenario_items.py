"""Scenarios as test items: how they are found, named, selected and run."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from statek_sim.suite.run import builtin_suites

PASSES = "scenarios/turns.yaml::limits/one-turn[docs]"
FAILS = "scenarios/turns.yaml::limits/one-turn-more[docs]"


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    """Return the ids of the items that a run with `args` would run."""
    result = pytester.runpytest("--collect-only", "-q", *args)
    return [line for line in result.outlines if "::" in line and not line.startswith("ERROR")]


@pytest.mark.usefixtures("suite")
def test_every_scenario_is_an_item_per_profile(pytester: pytest.Pytester) -> None:
    assert collected(pytester, "--statek-scenarios=scenarios") == [
        PASSES,
        "scenarios/turns.yaml::limits/one-turn[1.2]",
        "scenarios/turns.yaml::limits/one-turn[1.4]",
        FAILS,
    ]


@pytest.mark.usefixtures("suite")
def test_without_the_option_nothing_is_collected_from_scenario_files(pytester: pytest.Pytester) -> None:
    assert collected(pytester) == []


@pytest.mark.usefixtures("suite")
def test_without_paths_only_scenarios_are_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    assert len(collected(pytester, "--statek-scenarios=scenarios")) == 4


@pytest.mark.usefixtures("suite")
def test_scenarios_are_added_to_tests_whose_path_is_given(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    ids = collected(pytester, "test_own.py", "--statek-scenarios=scenarios")
    assert ids[0] == "test_own.py::test_own"
    assert len(ids) == 5


@pytest.mark.usefixtures("suite")
def test_the_option_is_repeatable_and_a_file_named_twice_is_collected_once(pytester: pytest.Pytester) -> None:
    ids = collected(pytester, "--statek-scenarios=scenarios", "--statek-scenarios=scenarios/turns.yaml")
    assert len(ids) == 4


@pytest.mark.usefixtures("suite")
def test_a_scenario_is_run_by_its_node_id_alone(pytester: pytest.Pytester) -> None:
    pytester.runpytest(PASSES).assert_outcomes(passed=1)


@pytest.mark.usefixtures("suite")
def test_a_node_id_without_profile_runs_all_profiles(pytester: pytest.Pytester) -> None:
    pytester.runpytest(PASSES.removesuffix("[docs]")).assert_outcomes(passed=3)


@pytest.mark.usefixtures("suite")
def test_a_scenario_file_is_run_by_its_path(pytester: pytest.Pytester) -> None:
    pytester.runpytest("scenarios/turns.yaml").assert_outcomes(passed=3, failed=1)


@pytest.mark.usefixtures("suite")
def test_a_file_given_as_path_and_by_option_is_collected_once(pytester: pytest.Pytester) -> None:
    assert len(collected(pytester, "scenarios/turns.yaml", "--statek-scenarios=scenarios")) == 4


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    ("args", "count"),
    [
        (("-k", "limits/one-turn[docs]"), 1),
        (("-k", "one-turn and not more"), 3),
        (("-k", "docs"), 2),
        (("-k", "1.4"), 1),
        (("-k", "quick"), 3),
        (("-m", "quick"), 3),
        (("-m", "not quick"), 1),
        (("-m", "statek", "--strict-markers"), 4),
        (("--deselect", FAILS), 3),
        (("--statek-profile=docs",), 2),
        (("--statek-profile=1.2", "--statek-profile=1.4"), 2),
    ],
)
def test_scenarios_are_selected(pytester: pytest.Pytester, args: tuple[str, ...], count: int) -> None:
    assert len(collected(pytester, "--statek-scenarios=scenarios", *args)) == count


def test_tags_that_pytest_would_act_on_are_only_keywords(pytester: pytest.Pytester, suite: Path) -> None:
    suite.write_text(suite.read_text("utf-8").replace("[quick]", "[skip, usefixtures, two words]"), "utf-8")
    pytester.runpytest("--statek-scenarios=scenarios", "-k", "usefixtures").assert_outcomes(
        passed=3, deselected=1
    )


@pytest.mark.usefixtures("suite")
def test_x_stops_at_the_first_failing_scenario(pytester: pytest.Pytester) -> None:
    path = pytester.path / "scenarios" / "turns.yaml"
    path.write_text(path.read_text("utf-8").replace("llm_calls: 1}", "llm_calls: 9}"), "utf-8")
    pytester.runpytest("--statek-scenarios=scenarios", "-x").assert_outcomes(failed=1)


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.usefixtures("suite")
def test_lf_runs_what_failed_and_nothing_else(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.runpytest("--statek-scenarios=scenarios", *workers).assert_outcomes(passed=3, failed=1)
    assert collected(pytester, "--statek-scenarios=scenarios", "--lf") == [FAILS]


@pytest.mark.usefixtures("suite")
def test_lf_finds_failed_scenarios_and_failed_tests_together(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_good(): pass\ndef test_bad(): assert False")
    args = ("test_own.py", "--statek-scenarios=scenarios")
    pytester.runpytest(*args).assert_outcomes(passed=4, failed=2)
    assert collected(pytester, *args, "--lf") == ["test_own.py::test_bad", FAILS]


@pytest.mark.slow
@pytest.mark.usefixtures("suite")
def test_scenarios_run_under_xdist(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios", "-n", "2")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*STATEK scenarios*", "limits *3 *1 *", "3 passed, 1 failed*"])


@pytest.mark.usefixtures("suite")
def test_junit_xml_carries_source_suite_and_statements(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--statek-scenarios=scenarios", "--junitxml=out.xml", "-k", "limits/one-turn[docs]")
    (case,) = ElementTree.parse(pytester.path / "out.xml").getroot().iter("testcase")
    assert case.get("name") == "limits/one-turn[docs]"
    assert {found.get("name"): found.get("value") for found in case.iter("property")} == {
        "source": "000 What the Limits Mean",
        "suite": "limits",
        "profile": "docs",
        "proves": "H-01, H-02",
    }


def test_the_built_in_suites_have_ids_that_name_no_machine(pytester: pytest.Pytester) -> None:
    ids = collected(pytester, "--statek-scenarios")
    assert ids
    assert all(item.startswith("statek_suites/") for item in ids)
    assert str(builtin_suites()) not in "".join(ids)


def test_the_built_in_suites_run_beside_own_scenarios(pytester: pytest.Pytester, suite: Path) -> None:
    ids = collected(pytester, "--statek-scenarios", f"--statek-scenarios={suite}")
    assert {item.partition("/")[0] for item in ids} == {"statek_suites", "scenarios"}


@pytest.mark.usefixtures("suite")
def test_hooks_of_a_conftest_above_the_suites_apply_to_their_items(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\ndef pytest_runtest_setup(item):\n    pytest.skip('not today')")
    pytester.runpytest("--statek-scenarios=scenarios").assert_outcomes(skipped=4)


@pytest.mark.usefixtures("suite")
def test_scenarios_run_without_xdist(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios", "-p", "no:xdist")
    result.assert_outcomes(passed=3, failed=1)


@pytest.mark.usefixtures("suite")
def test_scenarios_outside_the_project_have_ids_relative_to_it(pytester: pytest.Pytester) -> None:
    project = pytester.mkdir("project")
    pytester.makepyfile(**{"project/test_own": "def test_own(): pass"})
    ids = collected(
        pytester, f"--rootdir={project}", "--statek-scenarios=scenarios", "-k", "limits/one-turn[docs]"
    )
    assert ids == [f"../{PASSES}"]


TALK = """
scenarios:
  - id: talk
    title: A job talks
    agents: {worker: {prompt: Be brief.}}
    script: {worker: [{code: "exit('ok')"}]}
    expect: {usage: {tokenizer: words}}
"""


def test_a_tokenizer_that_a_conftest_registers_measures_scenarios(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", talk=TALK)
    pytester.makeconftest(
        """
        class Words:
            def count(self, text):
                return len(text.split())

        def pytest_statek_tokenizers(registry):
            registry.register_tokenizer("gpt-4o", "words", Words())
        """
    )
    pytester.runpytest("-q", "--statek-scenarios=talk.yaml").assert_outcomes(passed=3)


CONNECTING = """
scenarios:
  - id: connecting
    title: A tool opens a connection
    profiles: [docs]
    agents: {worker: {tools: ["netting:connect"]}}
    script: {worker: [{code: "exit(connect())"}]}
    expect: {jobs: {main: {stop: exit}}}
"""


@pytest.mark.parametrize(
    ("options", "outcome"), [((), "failed"), (("-ostatek_allow_network=true",), "passed")]
)
def test_a_scenario_may_connect_only_when_the_network_is_allowed(
    pytester: pytest.Pytester, options: tuple[str, ...], outcome: str
) -> None:
    pytester.makefile(".yaml", connecting=CONNECTING)
    pytester.makepyfile(
        netting="""
        import socket

        from statek_sim import tool

        @tool
        def connect(**kwargs):
            # A datagram socket sends nothing when it connects.
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
                link.connect(("192.0.2.1", 9))
            return "connected"
        """
    )
    pytester.syspathinsert()
    pytester.runpytest("-q", "--statek-scenarios=connecting.yaml", *options).assert_outcomes(**{outcome: 1})
