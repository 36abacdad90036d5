"""A small scenario that does a bit of everything, for the tests of suites."""

from __future__ import annotations

from pathlib import Path

from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.result import ScenarioResult
from statek_sim.suite.run import run_one

CLAIMS = """\
  - id: claims
    title: A claimed item goes to ERROR when the job fails
    source: "003 Invocation"
    tags: [claims]
    world: {queue: {items: [invoice-1, invoice-2]}}
    agents: {worker: {prompt: You work., tools: [fetch_next_item, echo]}}
    jobs: {main: {message: go on, locals: {owner: {$world: owner}}}}
    script:
      worker:
        - code: |
            for n in range(2):
                print(n)
        - tools: [{name: echo, args: {value: hello}}]
        - code: |
            claim = fetch_next_item(owner)
            raise ValueError("no more")
        - code: undefined
        - code: print("asked for, never run")
"""
"""Ends with a harness stop, one handler call and one item in ERROR; `{expect}` follows."""


def load(folder: Path, text: str, *, name: str = "file.yaml") -> tuple[Scenario, ...]:
    """Write scenarios, without the line `scenarios:`, into a file and load it."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"suite: samples\nscenarios:\n{text}", encoding="utf-8")
    return load_or_fail([path])


def claims(folder: Path, expect: str = "{}", *, profile: str = "docs", more: str = "") -> ScenarioResult:
    """Return the result of the sample scenario with this `expect`, in flow style."""
    scenario, *_ = load(folder, f"{CLAIMS}    expect: {expect}\n{more}")
    return run_one(scenario, profile)
