"""The keys of a scenario file that belong to one engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.scenario.agent import AGENT_STOPS
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.part import Part
from statek_sim.scenario.problem import Finding, Keypath, dotted
from statek_sim.scenario.schema import AGENT_PROFILES, ScenarioText
from statek_sim.semantics import PROFILES

_AGENT_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("tools", "servers", "task_types", "slots"),
    "agents": ("layers", "offer", "workflow", "harness"),
    "jobs": ("priority", "submitter"),
    "script": (),
    "expect": (),
    "expect.jobs": (
        "answer",
        "offered",
        "lint",
        "refused",
        "nudges",
        "steps_done",
        "steps_open",
        "cached_share",
    ),
}
_STATEK_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("settings", "order", "max_concurrency", "budget", "world", "loops"),
    "agents": ("chat_style", "dialog", "tools_scope", "warmup", "answer_tool", "reminder"),
    "jobs": ("locals", "warmup", "parent", "subtask"),
    "script": ("code", "python"),
    "expect": ("world", "claims_leaked", "handlers"),
    "expect.jobs": (
        "exit",
        "definition_errors",
        "console",
        "locals",
        "absent_locals",
        "tool_log",
        "handlers",
        "delivered",
        "subtasks",
    ),
}
"""The keys that only one engine's scenarios may have, by the part of the file."""

_AGENT_EVENTS: Final = ("push", "start", "answer", "refuse", "crash", "restart")
_AGENT_ONLY_EVENTS: Final = ("answer", "refuse")
_STATEK_STOPS: Final = ("exit", "warmup", "contained")


def engine_findings(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    """Yield every key that does not belong to the scenario's engine."""
    agent = scenario.engine == "agent"
    refused = _STATEK_ONLY if agent else _AGENT_ONLY
    yield from _said((), scenario, refused[""], scenario.engine)
    for role, declared in scenario.agents.items():
        yield from _said(("agents", role), declared, refused["agents"], scenario.engine)
    for name, job in scenario.jobs.items():
        yield from _said(("jobs", name), job, refused["jobs"], scenario.engine)
    for key, replies in scenario.script.items():
        for position, reply in enumerate(replies):
            yield from _said(("script", key, position), reply, refused["script"], scenario.engine)
    yield from _profiles(scenario)
    for position, event in enumerate(scenario.events):
        if (event.action not in _AGENT_EVENTS) if agent else (event.action in _AGENT_ONLY_EVENTS):
            at: Keypath = ("events", position, event.action)
            yield Finding(at, _words(at, event.action, scenario.engine))
    expectations: list[tuple[Keypath, Expect]] = [(("expect",), scenario.expect)]
    expectations += [(("expect_in", name), expect) for name, expect in scenario.expect_in.items()]
    for where, expect in expectations:
        yield from _expectations(where, expect, refused, scenario.engine)


def _profiles(scenario: ScenarioText) -> Iterator[Finding]:
    agent = scenario.engine == "agent"
    if agent and not scenario.said("profiles"):
        return
    for position, name in enumerate(scenario.profiles):
        if (name in AGENT_PROFILES) != agent:
            options = ", ".join(AGENT_PROFILES if agent else PROFILES)
            message = (
                f"profiles[{position}]: {name!r} is not for engine {scenario.engine}, expected {options}"
            )
            yield Finding(("profiles", position), message)


def _expectations(
    at: Keypath, expect: Expect, refused: Mapping[str, tuple[str, ...]], engine: str
) -> Iterator[Finding]:
    yield from _said(at, expect, refused["expect"], engine)
    stops = _STATEK_STOPS if engine == "agent" else AGENT_STOPS
    for name, job in expect.jobs.items():
        here: Keypath = (*at, "jobs", name)
        yield from _said(here, job, refused["expect.jobs"], engine)
        if job.stop in stops:
            yield Finding(
                (*here, "stop"), f"{dotted((*here, 'stop'))}: no job of engine {engine} stops by {job.stop!r}"
            )


def _said(at: Keypath, part: Part, keys: Iterable[str], engine: str) -> Iterator[Finding]:
    for key in keys:
        if part.said(key):
            here: Keypath = (*at, key)
            yield Finding(here, _words(here, key, engine))


def _words(at: Keypath, key: str, engine: str) -> str:
    other = "statek" if engine == "agent" else "agent"
    return f"{dotted(at)}: {key!r} is for engine {other}, and this scenario runs on {engine}"


def known_name(
    at: Keypath, name: str, options: Iterable[str], noun: str, *, made: re.Pattern[str] | None = None
) -> Iterator[Finding]:
    """Yield a finding unless `name` is among `options` or matches `made`, the names that a run creates itself."""
    known = list(options)
    if name in known or (made is not None and made.fullmatch(name)):
        return
    hint = suggestion(name, known) or (f" Known: {', '.join(known)}" if known else " There is none")
    yield Finding(at, f"{dotted(at)}: {name!r} is no {noun}.{hint}")
