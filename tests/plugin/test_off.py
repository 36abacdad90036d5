"""A run that uses nothing of the plugin pays nothing for it."""

from __future__ import annotations

import json
import sys

import pytest

ALLOWED = {
    "pytest_statek",
    "pytest_statek.hooks",
    "pytest_statek.fallback",
    "pytest_statek.options",
    "pytest_statek.plugin",
    "pytest_statek.fixtures",
}

HEAVY = (
    "statek_sim",
    "pydantic",
    "tiktoken",
    "rich",
    "freezegun",
    "yaml",
    "ruamel",
    "vcr",
    "RestrictedPython",
    "dotenv",
)

SPY = """\
import json, sys

def pytest_unconfigure(config):
    with open("modules.json", "w") as file:
        json.dump(sorted(sys.modules), file)
"""


def loaded(pytester: pytest.Pytester, *args: str) -> set[str]:
    """Return the modules that a run in a fresh process has loaded when it ends."""
    pytester.makeconftest(SPY)
    result = pytester.runpytest_subprocess(*args)
    assert result.ret in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    modules: list[str] = json.loads((pytester.path / "modules.json").read_text("utf-8"))
    return set(modules)


@pytest.mark.parametrize("args", [(), ("-n", "1"), ("--help",), ("--markers",), ("--fixtures",)])
def test_a_plain_run_loads_only_small_modules(pytester: pytest.Pytester, args: tuple[str, ...]) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    modules = loaded(pytester, *args)
    assert {name for name in modules if name.startswith("pytest_statek")} == ALLOWED
    assert not {name for name in modules if name.split(".")[0] in HEAVY}


COUNTING = """\
import importlib.metadata as metadata

READS = []
distributions = metadata.distributions

def counted(**context):
    READS.append(context)
    return distributions(**context)

metadata.distributions = counted

def pytest_unconfigure(config):
    print("reads:", len(READS))
"""


def test_a_plain_run_does_not_make_pytest_search_the_installed_packages_again(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(counting=COUNTING, test_own="def test_own(): pass")
    reads = []
    for args in ((), ("-p", "no:statek")):
        result = pytester.runpytest_subprocess("-s", "-p", "counting", *args)
        reads += [line for line in result.outlines if "reads:" in line]
    assert len(reads) == 2
    assert reads[0] == reads[1] != "reads: 0"


def test_ini_keys_alone_load_nothing_in_a_run_with_paths(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstatek_scenarios = scenarios\nstatek_preset = batch\nstatek_seed = 1")
    pytester.makepyfile(test_own="def test_own(): pass")
    assert not {name for name in loaded(pytester, "test_own.py") if name.startswith("statek_sim")}


def test_yaml_files_of_a_project_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", compose="services: [")
    pytester.makepyfile(test_own="def test_own(): pass")
    pytester.runpytest().assert_outcomes(passed=1)


@pytest.mark.usefixtures("suite")
def test_a_whole_run_works_in_a_process_of_its_own(pytester: pytest.Pytester) -> None:
    result = pytester.run(sys.executable, "-m", "pytest", "--statek-scenarios=scenarios")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
