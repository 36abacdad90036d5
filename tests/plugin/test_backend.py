"""`--statek-backend`: who runs the scenarios."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("suite")

without_statek = pytest.mark.skipif(
    any(one.name == "statek" for one in distributions()), reason="statek is installed here"
)
INSTALL = f"install it with: {sys.executable} -m pip install 'statek[dbzero]'"

STATEK_HERE = """\
import importlib.metadata
import importlib.util

distribution_version = importlib.metadata.version
importlib.metadata.version = lambda name: {version!r} if name == "statek" else distribution_version(name)

find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    {dbzero} if name == "dbzero" else find_spec(name, package)
)
"""
"""A conftest under which `statek` looks installed; nothing imports it before a scenario runs."""


@without_statek
def test_without_statek_the_installed_backend_says_what_to_install(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--statek-scenarios=scenarios", "--statek-backend=installed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == (
        f"ERROR: statek: --statek-backend=installed: statek is not installed for {sys.executable}; {INSTALL}"
    )


def test_a_conftest_that_imports_what_is_not_installed_is_no_traceback(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from statek.agents import SupervisedAgent\n")
    result = pytester.runpytest("--statek-backend=installed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == (
        f"ERROR: statek: --statek-backend=installed: statek is not installed for {sys.executable}; {INSTALL}"
    )


def test_another_error_of_a_conftest_stays_as_it_is(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import nowhere_to_be_found\n")
    result = pytester.runpytest("--statek-backend=installed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ImportError while loading conftest *", "*No module named 'nowhere_to_be_found'"]
    )


@pytest.mark.parametrize(
    ("version", "dbzero", "message"),
    [
        ("1.4.2", None, f"dbzero is not installed for {sys.executable}; {INSTALL}"),
        (
            "9.9.9",
            True,
            "statek 9.9.9 has no behaviour profile; expected one of 1.2.x, 1.4.x, installed with: "
            f"{sys.executable} -m pip install 'statek[dbzero]==1.4.2'",
        ),
    ],
    ids=["no-dbzero", "no-profile"],
)
def test_a_statek_that_cannot_be_used_is_told(
    pytester: pytest.Pytester, version: str, dbzero: object, message: str
) -> None:
    pytester.makeconftest(STATEK_HERE.format(version=version, dbzero=dbzero))
    result = pytester.runpytest_subprocess("--statek-scenarios=scenarios", "--statek-backend=installed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == f"ERROR: statek: --statek-backend=installed: {message}"


def test_another_profile_than_the_installed_ones_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STATEK_HERE.format(version="1.4.2", dbzero=True))
    result = pytester.runpytest_subprocess(
        "--statek-scenarios=scenarios", "--statek-backend=installed", "--statek-profile=docs"
    )
    assert result.stderr.str().strip() == (
        "ERROR: statek: --statek-profile=docs: remove this option; "
        "statek 1.4.2 (profile 1.4) always uses its own profile"
    )


def test_the_version_says_the_profile_and_the_header_says_both(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STATEK_HERE.format(version="1.2.7", dbzero=True))
    result = pytester.runpytest_subprocess(
        "--statek-scenarios=scenarios", "--statek-backend=installed", "--collect-only"
    )
    result.stdout.fnmatch_lines(
        [
            "statek: scenarios and applications run on the installed statek 1.2.7 (profile 1.2)",
            "*limits/one-turn?1.2?*",
        ]
    )
    result.stdout.no_fnmatch_line("*[[]docs[]]*")


def test_a_backend_that_there_is_not_is_refused(pytester: pytest.Pytester, suite: Path) -> None:
    result = pytester.runpytest(f"--statek-scenarios={suite}", "--statek-backend=real")
    result.stderr.fnmatch_lines(["*invalid choice: 'real'*reference*installed*"])
    pytester.makeini("[pytest]\nstatek_backend = real\n")
    result = pytester.runpytest(f"--statek-scenarios={suite}")
    assert result.stderr.str().strip() == (
        "ERROR: statek: statek_backend='real': expected reference or installed"
    )


def test_the_reference_backend_is_what_runs_without_the_option_too(pytester: pytest.Pytester) -> None:
    one = pytester.runpytest("--statek-scenarios=scenarios", "--statek-backend=reference")
    one.assert_outcomes(passed=3, failed=1)
    pytester.runpytest("--statek-scenarios=scenarios").assert_outcomes(passed=3, failed=1)
