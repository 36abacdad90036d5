"""Scenarios made in memory and really run: what the tests of the usage analysis analyse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from statek_sim.scenario.check import jobs_of
from statek_sim.scenario.schema import Scenario, ScenarioText
from statek_sim.suite.result import ScenarioResult
from statek_sim.suite.run import run_one
from statek_sim.values import JSON


def scenario(text: Mapping[str, JSON], scenario_id: str = "sample", *, suite: str = "samples") -> Scenario:
    """Return a scenario of one agent `clerk` unless `text` has others."""
    whole = ScenarioText.model_validate(
        {"id": scenario_id, "title": "A sample.", "agents": {"clerk": {}}, **text}
    )
    return Scenario.placed(
        whole, jobs_of(whole), suite=suite, path=Path("sample.yaml"), line=1, file_digest="0" * 64
    )


def played(
    text: Mapping[str, JSON], scenario_id: str = "sample", *, suite: str = "samples", profile: str = "docs"
) -> ScenarioResult:
    """Run such a scenario."""
    return run_one(scenario(text, scenario_id, suite=suite), profile)


def dialog(
    *replies: JSON, message: str = "Good morning", unlimited: bool = True, **agent: JSON
) -> dict[str, JSON]:
    """Return the text of a scenario in which a dialog agent is told `message` and answers one reply per call."""
    limits = ("max_turns", "max_exceptions", "max_consecutive_exceptions", "max_token_usage")
    text: dict[str, JSON] = {
        "agents": {"clerk": {"dialog": True, "chat_style": "DIRECT", **agent}},
        "jobs": {"main": {"message": message}},
        "script": {"clerk": list(replies)},
    }
    return {**text, "limits": dict.fromkeys(limits)} if unlimited else text
