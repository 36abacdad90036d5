"""What README.md shows must work as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from statek_sim.cli.app import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """Return the first fenced block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found, f"README.md has no {language} block"
    return found.group(1)


def test_the_example_is_a_passing_test_of_at_most_fifteen_lines(pytester: pytest.Pytester) -> None:
    example = block("python")
    assert len(example.splitlines()) <= 15
    pytester.makepyfile(test_example=example)
    pytester.runpytest("-q").assert_outcomes(passed=1)


def test_every_example_is_a_passing_test(pytester: pytest.Pytester) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    pytester.makepyfile(**{f"test_{number}": example for number, example in enumerate(examples)})
    pytester.runpytest("-q").assert_outcomes(passed=2)


def test_the_example_fails_when_the_tool_forgets_its_cleanup(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_example=block("python").replace("@tool(error_handler=_release)", "@tool"))
    pytester.runpytest("-q").assert_outcomes(failed=1)


def test_the_scenario_passes_under_every_profile(pytester: pytest.Pytester) -> None:
    path = pytester.path / "scenarios" / "claims.yaml"
    path.parent.mkdir()
    path.write_text(block("yaml"), encoding="utf-8")
    pytester.runpytest("-q", "--statek-scenarios=scenarios").assert_outcomes(passed=3)


def test_what_the_harness_thinks_is_what_the_command_prints() -> None:
    ran = CliRunner().invoke(app, ["run", str(ROOT / "scenarios" / "usage"), "--watchdog", "off"])
    assert block("text") in ran.stdout


def test_the_bug_that_is_told_is_the_one_that_the_page_on_exploration_finds() -> None:
    found = re.search(r"```text\n(FAILED .*?)```", README, re.DOTALL)
    assert found is not None
    # Whose console blocks are run by tests/docs.
    assert found[1] in (ROOT / "docs" / "exploration.md").read_text("utf-8")


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 230


def test_its_links_lead_to_files_of_the_repository() -> None:
    links = re.findall(r"\]\((?!https://)([^)]+)\)", README)
    assert len(links) > 30
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_figures_of_speed_are_those_of_the_page_on_speed() -> None:
    page = (ROOT / "docs" / "speed.md").read_text("utf-8")
    rows = [
        row
        for row in README.partition("## Speed")[2].splitlines()
        if row.startswith("| ") and "---" not in row
    ]
    figures = [row for row in rows if re.search(r"\d", row)]
    assert len(figures) == 5
    assert [row for row in figures if row not in page] == []
