"""Small workloads, presets and policies: what the tests of the gate judge."""

from __future__ import annotations

from pathlib import Path

from statek_sim.gate.gate import GatePlan, gate_plan, judge_presets
from statek_sim.gate.verdict import GateResult
from statek_sim.scenario.load import load_or_fail

WORKLOADS = """\
suite: sample
defaults:
  profiles: [docs, "1.4"]
  agents: {clerk: {tools: [fetch_next_item]}}
scenarios:
  - id: useful
    title: Six turns and an exception, then an answer
    tags: [healthy]
    script: {clerk: [{code: "print('a' * 400)", repeat: 4}, {code: 1/0}, {code: exit('done')}]}
  - id: short
    title: Two turns and done
    tags: [healthy, quick]
    script: {clerk: [{code: print(1)}, {code: exit('done')}]}
  - id: loop
    title: The same code again and again, from the third turn on
    tags: [runaway]
    goes_bad: {main: 3}
    script: {clerk: [{code: print(1), repeat: 40}]}
  - id: hoard
    title: Takes items and never gives them back
    tags: [claims]
    world: {queue: {items: [invoice-1, invoice-2]}}
    jobs: {main: {locals: {owner: {$world: owner}}}}
    script: {clerk: [{code: item = fetch_next_item(owner)}, {code: exit('done')}]}
"""

POLICY = """\
[[rule]]
name = "work finishes"
select = {tags = ["healthy"]}
must = "finish"

[[rule]]
name = "loops stop"
select = {tags = ["runaway"]}
must = "stop"
"""

ROOMY = "STATEK_MAX_TURNS=10\nSTATEK_MAX_EXCEPTIONS=3\nSTATEK_MAX_CONSECUTIVE_EXCEPTIONS=1\n"
TIGHT = "# too tight\nSTATEK_MAX_TURNS=4\n"


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def planned(folder: Path, preset: str, policy: str = POLICY) -> GatePlan:
    """Return the plan for a preset of this text, `own.env`, under a policy of this text, `policy.toml`."""
    return gate_plan(
        [str(written(folder, "own.env", preset))],
        policy=written(folder, "policy.toml", policy),
        folder=folder,
    )


def result(
    folder: Path, preset: str, policy: str = POLICY, *, workloads: str = WORKLOADS, profile: str = "docs"
) -> GateResult:
    """Judge such a preset on workloads of this text."""
    scenarios = load_or_fail([written(folder, "workloads.yaml", workloads)])
    return judge_presets(
        planned(folder, preset, policy), scenarios, profile="1.4" if profile == "1.4" else "docs"
    )


def reasons(found: GateResult, folder: Path) -> list[str]:
    """Return what fails, each with its place, without the folder."""
    return [f"{verdict.place}: {verdict.reason}".replace(f"{folder}/", "") for verdict in found.failed]
