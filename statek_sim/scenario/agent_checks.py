"""Checks names in engine two scenarios: tools, task types, servers, steps and guards must exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from statek_sim.agent.effects import SideModel
from statek_sim.agent.step_enforcement import Step, StepPlan, beyond
from statek_sim.agent.tools.registry import server_tool_name
from statek_sim.errors import BadInput
from statek_sim.mcp.client import check_server_name
from statek_sim.mcp.fault import Faults, fault_from
from statek_sim.scenario.agent import HarnessText, OfferText, StepsText, ToolText
from statek_sim.scenario.permissions import PermissionsText
from statek_sim.scenario.problem import Finding, Keypath, dotted, known_name
from statek_sim.scenario.schema import AgentText, ScenarioText

_PLAIN_SCHEMA: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "description", "title", "$schema"}
)
"""The only keywords in a JSON Schema whose `properties` list every possible argument."""
_AGENT_METADATA: Final = ("PROVIDER",)


def agent_findings(scenario: ScenarioText, path: Path) -> Iterator[Finding]:
    """Yield a finding for every unknown name and every contradiction in an engine two scenario."""
    yield from _servers(scenario)
    yield from _task_types(scenario)
    yield from _references(scenario)
    registered = [known for name, tool in scenario.tools.items() for known in _names(scenario, name, tool)]
    for role, agent in scenario.agents.items():
        at: Keypath = ("agents", role)
        for key in agent.metadata:
            if key not in _AGENT_METADATA:
                yield Finding(
                    (*at, "metadata", key),
                    f"{dotted((*at, 'metadata', key))}: the agent engine only supports PROVIDER",
                )
        known = [*registered, *(name.rpartition(":")[2] for name in agent.tools if ":" in name)]
        for position, name in enumerate(agent.tools):
            if ":" not in name:
                yield from known_name((*at, "tools", position), name, registered, "tool")
        yield from _context((*at, "harness"), agent.harness, scenario.agents)
        yield from _guards((*at, "harness", "guards"), agent.harness, scenario.agents)
        for name in agent.harness.approvals:
            approval: Keypath = (*at, "harness", "approvals", name)
            yield from known_name(approval, name, known, "tool")
        yield from _permissions((*at, "harness", "permissions"), agent.harness.permissions, known)
        yield from _offer((*at, "offer"), scenario, agent)
        yield from _unoffered(at, scenario, agent)
        flow: Keypath = (*at, "workflow")
        yield from _plan(flow, agent.workflow)
        for position, step in enumerate(agent.workflow.steps):
            yield from known_name((*flow, "steps", position), step.tool, known, "tool")
            for number, before in enumerate(step.after):
                yield from known_name((*flow, "steps", position, "after", number), before, known, "tool")
        for position, name in enumerate(agent.workflow.helpers or ()):
            yield from known_name((*flow, "helpers", position), name, known, "tool")


def _offer(at: Keypath, scenario: ScenarioText, agent: AgentText) -> Iterator[Finding]:
    """Yield findings about an offer's conditions: unknown task types, and empty tag lists."""
    offer = agent.offer
    if offer.task is not None:
        yield from known_name((*at, "task"), offer.task, scenario.task_types, "task type")
    for key in ("all_tags", "any_tag"):
        if getattr(offer, key) == ():
            here: Keypath = (*at, key)
            problem = "an empty tag list selects nothing; remove the filter to offer every tool"
            yield Finding(here, f"{dotted(here)}: {problem}")


def _unoffered(at: Keypath, scenario: ScenarioText, agent: AgentText) -> Iterator[Finding]:
    """Yield a finding for each step whose tool is never offered."""
    if agent.harness.chooser is not None:
        return
    left_out = {
        known
        for name, tool in scenario.tools.items()
        for known in _names(scenario, name, tool)
        if not _chosen(known, tool, agent.offer, scenario.task_types)
    }
    for position, problem in beyond(_steps(agent.workflow), left_out.__contains__):
        here: Keypath = (*at, "workflow", "steps", position)
        yield Finding(here, f"{dotted(here)}: {problem}")


def _chosen(name: str, tool: ToolText, offer: OfferText, task_types: Mapping[str, Sequence[str]]) -> bool:
    """Return whether an offer may include a tool. Unknown task types count as known: another check reports them."""
    if name not in task_types.get(offer.task or "", (name,)):
        return False
    if offer.all_tags and not set(offer.all_tags) <= set(tool.tags):
        return False
    return not offer.any_tag or bool(set(offer.any_tag) & set(tool.tags))


def _task_types(scenario: ScenarioText) -> Iterator[Finding]:
    """Yield findings about unknown tools in task types."""
    agents = scenario.agents.values()
    known = [known for name, tool in scenario.tools.items() for known in _names(scenario, name, tool)]
    known += [name.rpartition(":")[2] for agent in agents for name in agent.tools if ":" in name]
    for task, names in scenario.task_types.items():
        for position, name in enumerate(names):
            yield from known_name(("task_types", task, position), name, known, "tool")


def _plan(at: Keypath, workflow: StepsText) -> Iterator[Finding]:
    """Yield a finding for steps that can never be completed."""
    try:
        StepPlan(steps=_steps(workflow))
    except BadInput as error:
        here: Keypath = (*at, "steps")
        yield Finding(here, f"{dotted(here)}: {error}")


def _steps(workflow: StepsText) -> tuple[Step, ...]:
    return tuple(
        Step(tool=step.tool, required=step.required, after=tuple(step.after)) for step in workflow.steps
    )


def _permissions(at: Keypath, permissions: PermissionsText | None, tools: Sequence[str]) -> Iterator[Finding]:
    """Yield findings about rules for unknown tools; a pattern need not match any tool."""
    if permissions is None:
        return
    for key in ("allow", "ask", "deny"):
        for position, rule in enumerate(getattr(permissions, key)):
            if rule.tool and "*" not in rule.tool:
                yield from known_name((*at, key, position, "tool"), rule.tool, tools, "tool")


def _references(scenario: ScenarioText) -> Iterator[Finding]:
    """Yield findings about references to an argument that no call can have, or a value that no result sets."""
    states = {key for tool in scenario.tools.values() for result in tool.results for key in result.sets}
    for name, tool in scenario.tools.items():
        at: Keypath = ("tools", name)
        shown: list[tuple[Keypath, JsonValue]] = [((*at, "result"), tool.result)]
        for position, result in enumerate(tool.results):
            here: Keypath = (*at, "results", position)
            shown += [((*here, "result"), result.result), ((*here, "sets"), dict(result.sets))]
        for place, value in shown:
            for path, kind, referred in _references_in(value, place):
                if kind == "$state":
                    yield from known_name(path, referred, sorted(states), "state value")
                elif (declared := _declared(tool)) is not None:
                    yield from known_name(path, referred, declared, f"argument of tool {name!r}:")


def _declared(tool: ToolText) -> Sequence[str] | None:
    """Return a tool's arguments, or None if its schema allows others."""
    schema = tool.parameters
    if schema.get("additionalProperties") or not schema.keys() <= _PLAIN_SCHEMA:
        return None
    properties = schema.get("properties", {})
    return [*properties] if isinstance(properties, dict) else None


def _references_in(value: JsonValue, at: Keypath) -> Iterator[tuple[Keypath, str, str]]:
    """Yield every `{$argument: NAME}` and `{$state: KEY}` in a result, as key path, kind and name."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _references_in(item, (*at, position))
    elif isinstance(value, dict):
        kind = next(iter(value), "")
        if len(value) == 1 and kind in ("$argument", "$state"):
            yield (*at, kind), kind, str(value[kind])
            return
        for key, item in value.items():
            yield from _references_in(item, (*at, key))


def _servers(scenario: ScenarioText) -> Iterator[Finding]:
    """Yield findings about servers: no tools, invalid names, unknown tools in lists and faults."""
    for name, server in scenario.servers.items():
        at: Keypath = ("servers", name)
        own = [own_name(key, tool) for key, tool in scenario.tools.items() if tool.server == name]
        if not own:
            yield Finding(at, f"{dotted(at)}: no tool has `server: {name}`")
            continue
        for position, listed in enumerate(server.listed or ()):
            yield from known_name((*at, "listed", position), listed, own, f"tool of server {name!r}:")
        for position, text in enumerate(server.faults):
            here = (*at, "faults", position)
            try:
                Faults([fault_from(text)]).check_names(own)
            except BadInput as error:
                yield Finding(here, f"{dotted(here)}: {error}")
        try:
            check_server_name(name)
            if server.prefix:
                check_server_name(server.prefix)
        except BadInput as error:
            yield Finding(at, f"{dotted(at)}: {error}")


def _names(scenario: ScenarioText, name: str, tool: ToolText) -> Iterator[str]:
    """Yield the names under which a tool may be registered; a server's prefix changes the name."""
    yield registered_name(name, tool)
    server = scenario.servers.get(tool.server or "")
    if server is not None:
        yield server_tool_name(server.prefix or "", own_name(name, tool))


def _context(at: Keypath, harness: HarnessText, agents: Iterable[str]) -> Iterator[Finding]:
    context = harness.context
    if context is None:
        return
    here: Keypath = (*at, "context")
    if harness.compactor is not None:
        yield Finding(
            here, f"{dotted(here)}: expected only one of context, compactor; both shorten the history"
        )
    if context.summary != "rule":
        yield from known_name((*here, "summary"), context.summary, ["rule", *agents], "agent")
    vram = context.vram
    if vram is not None:
        # Imported only for scenarios with cards, because it reads the table of models.
        from statek_sim.agent.context.vram import known_models  # noqa: PLC0415

        yield from known_name((*here, "vram", "model"), vram.model, known_models(), "model")


def _guards(at: Keypath, harness: HarnessText, agents: Mapping[str, AgentText]) -> Iterator[Finding]:
    """Yield findings about unknown built-in guards and invalid settings."""
    for position, text in enumerate(harness.guards):
        here = (*at, position)
        if text.is_own or text.file:
            continue
        # Imported only for scenarios with guards, because it loads JSON Schema.
        from statek_sim.agent.guards.settings import guard_of  # noqa: PLC0415

        judge = text.entry.get("by")
        if isinstance(judge, str):
            yield from known_name((*here, "by"), judge, agents, "agent")
        try:
            guard_of(text.entry, judges=lambda name: SideModel(model=name, prompt=_prompt_of(agents, name)))
        except BadInput as error:
            yield Finding(here, f"{dotted(here)}: {error}".removesuffix("."))


def _prompt_of(agents: Mapping[str, AgentText], name: str) -> str:
    return agents[name].prompt if name in agents else ""


def registered_name(name: str, tool: ToolText) -> str:
    """Return a tool's registered name; a server's tool is named SERVER__NAME."""
    return name if tool.server is None else f"{tool.server}__{own_name(name, tool)}"


def own_name(name: str, tool: ToolText) -> str:
    """Return a tool's name on its server."""
    return name.removeprefix(f"{tool.server}__")
