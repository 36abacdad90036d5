"""Reports for the browser: a real one, with hostile texts and a failure, and one of ten thousand runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from statek_sim.explore.explorer import Bounds
from statek_sim.explore.result import Exploration
from statek_sim.explore.workers import explore_one
from statek_sim.reporting.model import build_report
from statek_sim.reporting.page.data import PageData, crashes_json, embedded, page_data
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.run import builtin_suites, run_one
from statek_sim.values import JSON

HOSTILE: Final = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><!--"
"""What must be shown as it is, wherever it stands."""

NUDGED: Final = "agent-alternating-failures-share-one-budget"
LOST: Final = "lost-with-its-neighbours"
DIES: Final = "agent-dies-twice"
"""Built-in scenarios of the other engine, and of a value that the store loses."""

_SCENARIOS: Final = f"""\
suite: hostile
defaults:
  profiles: [docs]
  agents: {{clerk: {{prompt: "You work. {HOSTILE}", tools: [echo]}}}}
scenarios:
  - id: markup
    title: "A title with {HOSTILE}"
    tags: [markup]
    jobs: {{main: {{message: "{HOSTILE}"}}}}
    script:
      clerk:
        - tools: [{{name: echo, args: {{value: "{HOSTILE}"}}}}]
        - code: |
            print("{HOSTILE}")
        - code: exit("{HOSTILE}")
    expect: {{jobs: {{main: {{status: DONE}}}}}}
  - id: wrong
    title: A run that does not end as expected
    tags: [broken]
    jobs: {{main: {{}}}}
    script: {{clerk: [{{code: 'exit("yes")'}}]}}
    expect: {{jobs: {{main: {{exit: "{HOSTILE}"}}}}}}
"""

GATE: Final[dict[str, JSON]] = {
    "version": 1,
    "profile": "docs",
    "presets": [
        {"name": name, "path": name, "limits": {"max_turns": turns, "max_token_usage": None}}
        for name, turns in (("tight.env", 6), ("wide.env", 20))
    ],
    "remarks": [{"preset": "wide.env", "path": "wide.env", "line": 2, "message": "max_turns never binds"}],
    "verdicts": [
        {
            "preset": preset,
            "scenario": f"workloads/{scenario}[docs]",
            "rule": "healthy work finishes",
            "passed": passed,
            "reason": f"`{preset}`: {reason}",
            "path": preset,
            "line": 3,
        }
        for preset, scenario, passed, reason in (
            (
                "tight.env",
                "long-useful-chat",
                False,
                "stopped `long-useful-chat` on turn 6 by max_turns; needs >= 9",
            ),
            ("tight.env", "short-chat", True, "finished with 40 % headroom"),
            ("wide.env", "long-useful-chat", True, "finished with 55 % headroom"),
            ("wide.env", "short-chat", True, "finished with 90 % headroom"),
        )
    ],
    "passed": False,
}


def sample(folder: Path) -> PageData:
    """Return the page of the hostile runs, of built-in ones, and of everything else that a report can show."""
    hostile = folder / "hostile.yaml"
    hostile.write_text(_SCENARIOS, encoding="utf-8")
    paths = [builtin_suites() / "isolation", builtin_suites() / "harness" / "tokens.yaml", hostile]
    results = [run_one(scenario, "docs") for scenario in load_or_fail(paths) if "docs" in scenario.profiles]
    results += [
        run_one(*_builtin(*one)) for one in (("agent-nudges", NUDGED, "hardened"), ("storage", LOST, "1.4"))
    ]
    told = build_report(results, preset=None, seed=None)
    return page_data(results, told, gate=GATE, crashes=_crashes(hostile))


def _crashes(hostile: Path) -> dict[str, JSON]:
    """Explore a scenario of hostile texts, one that leaks a claim, one that is sound and one that is not explored."""
    bounds = Bounds(kinds=("crashes",), transcripts=True)
    pairs = [(load_or_fail([hostile])[0], "docs"), _builtin("claims", "claim-processed", "docs")]
    dies, hardened = _builtin("agent-checkpoints", DIES, "hardened")
    for_good = tuple(event for event in dies.events if event.action != "restart")
    pairs += [
        _builtin("agent-nudges", NUDGED, "hardened"),
        (dies.model_copy(update={"events": for_good}), hardened),
    ]
    return crashes_json(Exploration(tuple(explore_one(*pair, own=(), bounds=bounds) for pair in pairs)))


def _builtin(suite: str, scenario_id: str, profile: Profile) -> tuple[Scenario, Profile]:
    scenarios = load_or_fail([builtin_suites() / suite])
    return next(scenario for scenario in scenarios if scenario.id == scenario_id), profile


def crowd(page: PageData, runs: int) -> PageData:
    """Return a page with so many runs, `crowd/run-0[docs]` and so on; every tenth failed. Without details."""
    index: dict[str, Any] = json.loads(page.index)
    one = index["runs"][0]
    index["runs"] = [_copy(one, n) for n in range(runs)]
    failed = [run["n"] for run in index["runs"] if run["outcome"] == "failed"]
    index["totals"] |= {"runs": runs, "passed": runs - len(failed), "failed": len(failed)}
    index["failures"] = [{"runs": [n], "text": "it failed"} for n in failed]
    return PageData(title="A crowd", index=embedded(index), details={})


def _copy(run: dict[str, Any], n: int) -> dict[str, Any]:
    names = {"n": n, "suite": "crowd", "id": f"run-{n}", "name": f"crowd/run-{n}[docs]"}
    return {
        **run,
        **names,
        "title": f"Run {n}",
        "outcome": "passed" if n % 10 else "failed",
        "details": False,
    }
