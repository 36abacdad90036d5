"""Checks one scenario for unknown names, keys for the other engine, and contradictory values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, get_args

from statek_sim.did_you_mean import suggestion, with_suggestion
from statek_sim.errors import BadSetting, BadTool
from statek_sim.harness.preset import BUILT_IN
from statek_sim.harness.settings import SETTINGS, StatekSettings
from statek_sim.scenario.agent import AgentStop
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.part import JobReference, Part, WorldReference, references_in
from statek_sim.scenario.problem import MAX_PROBLEMS, Finding, Keypath, dotted, known_name
from statek_sim.scenario.schema import AGENT_PROFILES, JobText, Limits, ScenarioText
from statek_sim.semantics import PROFILES
from statek_sim.tool_names import BUILT_IN_TOOLS

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
"""Keys that are allowed in only one engine's scenarios, by part of the file."""

_AGENT_EVENTS: Final = ("push", "start", "answer", "refuse", "crash", "restart")
_AGENT_ONLY_EVENTS: Final = ("answer", "refuse")
_STATEK_STOPS: Final = ("exit", "warmup", "contained")


def engine_findings(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    """Yield a finding for every key that the scenario's engine does not support."""
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
        yield from _engine_expectations(where, expect, refused, scenario.engine)


def _profiles(scenario: ScenarioText) -> Iterator[Finding]:
    agent = scenario.engine == "agent"
    if agent and not scenario.said("profiles"):
        return
    for position, name in enumerate(scenario.profiles):
        if (name in AGENT_PROFILES) != agent:
            options = ", ".join(AGENT_PROFILES if agent else PROFILES)
            message = (
                f"profiles[{position}]: {name!r} is not for the {scenario.engine} engine, expected {options}"
            )
            yield Finding(("profiles", position), message)


def _engine_expectations(
    at: Keypath, expect: Expect, refused: Mapping[str, tuple[str, ...]], engine: str
) -> Iterator[Finding]:
    yield from _said(at, expect, refused["expect"], engine)
    stops = _STATEK_STOPS if engine == "agent" else get_args(AgentStop)
    for name, job in expect.jobs.items():
        here: Keypath = (*at, "jobs", name)
        yield from _said(here, job, refused["expect.jobs"], engine)
        if job.stop in stops:
            yield Finding(
                (*here, "stop"),
                f"{dotted((*here, 'stop'))}: jobs in the {engine} engine never stop with {job.stop!r}",
            )


def _said(at: Keypath, part: Part, keys: Iterable[str], engine: str) -> Iterator[Finding]:
    for key in keys:
        if part.said(key):
            here: Keypath = (*at, key)
            yield Finding(here, _words(here, key, engine))


def _words(at: Keypath, key: str, engine: str) -> str:
    other = "statek" if engine == "agent" else "agent"
    return f"{dotted(at)}: {key!r} is for the {other} engine, but this scenario has `engine: {engine}`"


_MADE_JOB: Final = re.compile(r"job-[0-9]+")
"""Names of jobs created during a run: child jobs and agentic loop jobs."""

MAIN: Final = "main"
"""The name of the only job in a scenario without `jobs`."""

Check = Callable[[ScenarioText, Path], Iterator[Finding]]


def jobs_of(scenario: ScenarioText) -> dict[str, JobText]:
    """Return a scenario's jobs, each with its agent.

    Without `jobs` and `loops` there is one job, `main`, for the only agent.
    """
    only = next(iter(scenario.agents)) if len(scenario.agents) == 1 else None
    declared = scenario.jobs or ({} if scenario.loops else {MAIN: JobText()})
    return {
        name: job if job.agent is not None else job.model_copy(update={"agent": only})
        for name, job in declared.items()
    }


def _job_names(scenario: ScenarioText) -> tuple[str, ...]:
    """Return the job names in a result of `jobs_of`."""
    return tuple(scenario.jobs) or (() if scenario.loops else (MAIN,))


def check(scenario: ScenarioText, path: Path) -> tuple[Finding, ...]:
    """Return the unknown names and contradictions in `scenario`; `path` is its file."""
    return tuple(islice((finding for rule in _CHECKS for finding in rule(scenario, path)), MAX_PROBLEMS))


def _agent(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    if scenario.engine != "agent":
        return
    # Imported only for engine two, because it loads tools, servers and their schemas.
    from statek_sim.scenario.agent_checks import agent_findings  # noqa: PLC0415

    yield from agent_findings(scenario, path)


def _preset(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    preset = scenario.preset
    if preset not in BUILT_IN and not (preset and (path.parent / preset).is_file()):
        message = f"preset: {preset!r} is neither one of {', '.join(BUILT_IN)} nor a file next to this one"
        yield Finding(("preset",), with_suggestion(message, preset, BUILT_IN))


def _settings(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    known = [name for name in SETTINGS if name not in Limits.model_fields]
    for name, value in scenario.settings.items():
        at: Keypath = ("settings", name)
        if name in Limits.model_fields:
            yield Finding(at, f"settings: {name!r} is a limit; set it under limits")
        elif name not in known:
            yield Finding(at, with_suggestion(f"settings: unknown setting {name!r}", name, known))
        else:
            yield from _setting(at, name, value)


def _setting(at: Keypath, name: str, value: object) -> Iterator[Finding]:
    try:
        StatekSettings(**{name: value})
    except BadSetting as error:
        yield Finding(at, f"settings: {error}")


def _agents(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    if not scenario.agents:
        yield Finding((), "no agents; expected at least one under agents")
    for role, agent in scenario.agents.items():
        for position, tool in enumerate(agent.tools if scenario.engine == "statek" else ()):
            # `module:attribute` is resolved when the scenario runs: importing runs code.
            if ":" not in tool and tool not in BUILT_IN_TOOLS:
                at: Keypath = ("agents", role, "tools", position)
                yield Finding(at, f"{dotted(at)}: {unknown_tool(tool, BUILT_IN_TOOLS)}")


def unknown_tool(name: str, known: Iterable[str]) -> str:
    """Return the error message for an unknown tool name."""
    names = list(known)
    hint = suggestion(name, names)
    if hint:
        return f"unknown built-in tool {name!r}.{hint} `statek-sim list tools` lists them"
    return (
        f"unknown built-in tool {name!r}. Known: {', '.join(names)} (`statek-sim list tools` describes "
        "them); write your own as 'module:attribute'"
    )


def _jobs(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    if not scenario.agents:
        return
    if not scenario.jobs and not scenario.loops and len(scenario.agents) > 1:
        yield Finding((), f"several agents ({', '.join(scenario.agents)}) but no jobs; declare the jobs")
    for position, role in enumerate(scenario.loops):
        yield from known_name(("loops", position), role, scenario.agents, "agent")
    declared: list[str] = []
    for name, job in scenario.jobs.items():
        if job.agent is not None:
            yield from known_name(("jobs", name, "agent"), job.agent, scenario.agents, "agent")
        elif len(scenario.agents) > 1:
            yield Finding(
                ("jobs", name), f"jobs.{name}: missing agent; expected one of {', '.join(scenario.agents)}"
            )
        if job.parent is not None:
            yield from known_name(("jobs", name, "parent"), job.parent, declared, "earlier job")
        if job.subtask is not None and job.parent is None:
            yield Finding(("jobs", name, "subtask"), f"jobs.{name}: a subtask requires a parent")
        declared.append(name)


def _parameters(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    if not any(tool.said("parameters") for tool in scenario.tools.values()):
        return
    # Imported here: only scenarios of engine two need JSON Schema validation.
    from statek_sim.agent.tools.arguments import ArgumentCheck  # noqa: PLC0415

    for name, tool in scenario.tools.items():
        try:
            ArgumentCheck(name, tool.parameters)
        except BadTool as error:
            yield Finding(("tools", name, "parameters"), f"tools: {error}")


def _locals(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    for name, job in scenario.jobs.items():
        at: Keypath = ("jobs", name, "locals")
        try:
            for keypath, reference in references_in(job.locals):
                yield from _reference((*at, *keypath), reference, scenario)
        except ValueError as error:
            yield Finding(at, f"{dotted(at)}: {error}")


def _reference(
    at: Keypath, reference: WorldReference | JobReference, scenario: ScenarioText
) -> Iterator[Finding]:
    if isinstance(reference, JobReference):
        yield from known_name(at, reference.name, _job_names(scenario), "job")
    elif reference.kind == "future":
        yield from known_name(at, reference.name, scenario.world.futures, "future")
    elif scenario.world.queue is None:
        yield Finding(at, f"{dotted(at)}: the world has no queue")
    elif reference.kind == "item":
        items = [item.id for item in scenario.world.queue.items]
        yield from known_name(at, reference.name, items, "queue item")


def _world(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    yield from _repeated(("world", "futures"), scenario.world.futures)
    if scenario.world.queue is None:
        return
    at: Keypath = ("world", "queue", "items")
    items = scenario.world.queue.items
    yield from _repeated(at, [item.id for item in items])
    for position, item in enumerate(items):
        if item.status == "CLAIMED" and item.owner is None:
            yield Finding((*at, position), f"item {item.id!r} is CLAIMED and requires an owner")


def _script(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    jobs = _job_names(scenario)
    for key, replies in scenario.script.items():
        if key.startswith("job:"):
            yield from known_name(("script", key), key.removeprefix("job:"), jobs, "job", made=_MADE_JOB)
        else:
            yield from known_name(("script", key), key, scenario.agents, "agent")
        for position, reply in enumerate(replies):
            if reply.job is not None:
                yield from known_name(
                    ("script", key, position, "job"), reply.job, jobs, "job", made=_MADE_JOB
                )


def _events(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    jobs = _job_names(scenario)
    started: list[str] = []
    yield from _too_late(scenario)
    for position, event in enumerate(scenario.events):
        at: Keypath = ("events", position, event.action)
        if event.after is not None and event.after.job is not None:
            yield from known_name(
                ("events", position, "after", "job"), event.after.job, jobs, "job", made=_MADE_JOB
            )
        match event.action:
            case "resolve" | "fail":
                yield from known_name(at, event.target, scenario.world.futures, "future")
            case "push" | "notify" | "answer" | "refuse":
                yield from known_name(at, event.target, jobs, "job", made=_MADE_JOB)
            case "start":
                yield from known_name(at, event.target, scenario.jobs, "declared job")
                started.append(event.target)
            case "complete" if not _mentions(scenario, event.target):
                yield from known_name(at, event.target, _subtasks(scenario), "subtask")
    yield from _repeated(("events",), started)
    for name in started:
        if name in scenario.jobs and scenario.jobs[name].said("at"):
            yield Finding(("jobs", name, "at"), f"jobs.{name}: has both `at` and a start event; remove one")


def _too_late(scenario: ScenarioText) -> Iterator[Finding]:
    """Yield a finding for everything scheduled after the end of the run, which would never happen."""
    moments: list[tuple[Keypath, float]] = [
        (("jobs", name, "at"), job.at) for name, job in scenario.jobs.items()
    ]
    moments += [(("events", position, "at"), event.at) for position, event in enumerate(scenario.events)]
    for at, second in moments:
        if second > scenario.until:
            yield Finding(
                at,
                f"{dotted(at)}: {second:g} is after the end of the run, {scenario.until:g} (`until`): "
                "raise or remove until",
            )


def _subtasks(scenario: ScenarioText) -> list[str]:
    return [job.subtask for job in scenario.jobs.values() if job.subtask is not None]


def _mentions(scenario: ScenarioText, name: str) -> bool:
    """Return whether code or a tool call in the scenario contains `name`, and so may create a thing with that name."""
    warmups = [job.warmup for job in scenario.jobs.values()]
    warmups += [agent.warmup for agent in scenario.agents.values()]
    if any(name in warmup for warmup in warmups if warmup is not None):
        return True
    return any(
        reply.kind == "call"
        or name in f"{reply.code}{reply.python}{reply.body}{[call.args for call in reply.tools]}"
        for replies in scenario.script.values()
        for reply in replies
    )


def _goes_bad(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    jobs = _job_names(scenario)
    for name in scenario.goes_bad:
        yield from known_name(("goes_bad", name), name, jobs, "job", made=_MADE_JOB)


def _expect(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    yield from _expectations(("expect",), scenario.expect, scenario)
    for profile, expect in scenario.expect_in.items():
        profiles = scenario.profiles
        if scenario.engine == "agent" and not scenario.said("profiles"):
            profiles = AGENT_PROFILES
        if profile not in profiles:
            message = f"expect_in: profile {profile!r} is not among profiles ({', '.join(profiles)})"
            yield Finding(("expect_in", profile), message)
        yield from _expectations(("expect_in", profile), expect, scenario)


def _expectations(at: Keypath, expect: Expect, scenario: ScenarioText) -> Iterator[Finding]:
    jobs = _job_names(scenario)
    for name in expect.jobs:
        yield from known_name((*at, "jobs", name), name, jobs, "job", made=_MADE_JOB)
    queue = scenario.world.queue
    items = [item.id for item in queue.items] if queue else []
    for item in expect.world.items:
        if _mentions(scenario, item):
            continue
        yield from known_name((*at, "world", "items", item), item, items, "queue item")
    for position, handler in enumerate(expect.handlers):
        if handler.job:
            yield from known_name(
                (*at, "handlers", position, "job"), handler.job, jobs, "job", made=_MADE_JOB
            )


def _repeated(at: Keypath, names: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for position, name in enumerate(names):
        if name in seen:
            yield Finding((*at, position), f"{dotted(at)}: {name!r} is listed twice")
        seen.add(name)


def _deviations(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    for place, deviation in enumerate(scenario.deviations):
        if scenario.engine == "agent" and deviation.action == "lose":
            yield Finding(
                ("deviations", place),
                "deviations: lose is only for the statek engine",
            )


_CHECKS: Final[tuple[Check, ...]] = (
    engine_findings,
    _agent,
    _preset,
    _settings,
    _agents,
    _parameters,
    _jobs,
    _locals,
    _world,
    _script,
    _events,
    _deviations,
    _goes_bad,
    _expect,
)
