"""The examples of frameworks show what each page promises; `python -m tools.frameworks` runs them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tools.frameworks import EXAMPLES, OF_CI, names

SHOWN: Final = {
    "a tool call": "expect_calls(",
    "a rate limit": "HttpError(429",
    "a stream": "stream(",
    "another agent": "_agent_is_asked|another_agent_takes_over",
    "structured output": "a_forecast_is_an_object",
    "a fault": "Reset(after=3)",
}


@pytest.mark.parametrize("name", names())
def test_an_example_is_small_and_shows_all_six(name: str) -> None:
    test = (EXAMPLES / name / "test_agent.py").read_text("utf-8")
    assert len(test.splitlines()) <= 65
    assert [what for what, words in SHOWN.items() if not any(word in test for word in words.split("|"))] == []
    assert "ignored=" not in test


@pytest.mark.parametrize("name", names())
def test_an_example_imports_what_it_requires_and_has_bounds(name: str) -> None:
    requirements = (EXAMPLES / name / "requirements.txt").read_text("utf-8").splitlines()
    assert requirements[0] == "pytest-statek"
    assert [line for line in requirements[1:] if ">=" not in line or ",<" not in line] == []
    ast.parse((EXAMPLES / name / "agent.py").read_text("utf-8"))


def test_the_page_on_frameworks_has_a_section_for_every_example() -> None:
    page = (EXAMPLES.parents[1] / "docs" / "frameworks.md").read_text("utf-8")
    assert [name for name in names() if f"../examples/frameworks/{name}" not in page] == []
    assert set(OF_CI) < set(names())
    assert len(names()) >= 8
    assert Path(EXAMPLES / "pytest.ini").is_file()


def test_the_record_on_the_page_is_that_of_a_run(pytester: pytest.Pytester) -> None:
    docs = EXAMPLES.parents[1] / "docs"
    for page in ("server.md", "frameworks.md"):
        for name, block in re.findall(
            r"^```python\n# (test_\w+)\.py\n(.*?)^```$",
            (docs / page).read_text("utf-8"),
            re.MULTILINE | re.DOTALL,
        ):
            pytester.makepyfile(**{name: block})
    pytester.runpytest("-q", "test_record.py").assert_outcomes(passed=1)
