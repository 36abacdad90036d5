"""What README.md shows must work as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


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


def test_the_example_fails_when_the_tool_forgets_its_cleanup(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_example=block("python").replace("@tool(error_handler=_release)", "@tool"))
    pytester.runpytest("-q").assert_outcomes(failed=1)


def test_the_scenario_passes_under_every_profile(pytester: pytest.Pytester) -> None:
    path = pytester.path / "scenarios" / "claims.yaml"
    path.parent.mkdir()
    path.write_text(block("yaml"), encoding="utf-8")
    pytester.runpytest("-q", "--statek-scenarios=scenarios").assert_outcomes(passed=3)
