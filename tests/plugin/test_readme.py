"""What README.md shows must work as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from statek_sim.cli.app import app, load_commands

load_commands()

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


MY_AGENT = """
import asyncio

from pydantic_ai import Agent

agent = Agent("openai-chat:gpt-4o", defer_model_check=True, retries=2)

@agent.tool_plain
def get_weather(city: str) -> str:
    return "rain"

def answer(question: str) -> str:
    return asyncio.run(agent.run(question)).output
"""
"""The module that the first two examples test. `run_sync` would leave an event loop open in this process."""


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def claim_test() -> str:
    return next(example for example in examples() if "def claim(" in example)


def test_every_example_is_a_passing_test_of_at_most_fifteen_lines(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(my_agent=MY_AGENT)
    pytester.makepyfile(**{f"test_{number}": example for number, example in enumerate(examples())})
    pytester.runpytest("-q").assert_outcomes(passed=3)
    assert [example for example in examples() if len(example.splitlines()) > 15] == []


def test_the_claim_test_fails_when_the_tool_forgets_its_cleanup(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_example=claim_test().replace("@tool(error_handler=_release)", "@tool"))
    pytester.runpytest("-q").assert_outcomes(failed=1)


def test_what_the_harness_thinks_is_what_the_command_prints() -> None:
    ran = CliRunner().invoke(app, ["usage", "--select", "usage-russian", "--watchdog", "off"])
    lines = re.findall(r"^ *([+-]?\d+) +(?:= )?(estimate|measured|escaping)\b", ran.stdout, re.MULTILINE)
    tokens = {name: abs(int(count)) for count, name in lines}
    assert len(tokens) == 3
    said = re.search(
        r"STATEK counts (\d+) tokens and the model saw (\d+)\. .* difference, (\d+)", " ".join(README.split())
    )
    assert said
    assert [*map(int, said.groups())] == [tokens["estimate"], tokens["measured"], tokens["escaping"]]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 140


def test_its_links_lead_to_files_of_the_repository_and_their_headings() -> None:
    links = [link.partition("#") for link in re.findall(r"\]\((?!https://)([^)]+)\)", README)]
    assert len(links) > 15
    assert [path for path, _, _ in links if not (ROOT / path).exists()] == []
    headed = [(path, heading) for path, _, heading in links if heading]
    assert [pair for pair in headed if pair[1] not in headings(ROOT / pair[0])] == []


def headings(page: Path) -> set[str]:
    """Return the names that links to the headings of a page have."""
    found = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in found}
