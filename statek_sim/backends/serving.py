"""Reads a file and returns the content for a fake server.

A fake LLM plays a script with faults, models and chat styles. An MCP server serves a program's tools, or a
scenario's scripted tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.agent.tools.registry import Registry
from statek_sim.agent.tools.tool import Tool
from statek_sim.backends.agent_setup import ScriptedTools
from statek_sim.backends.setup import attribute_at, condition_of, reply_at, script_of
from statek_sim.cassettes.document import parse, source_of
from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput
from statek_sim.mcp.scripted import served
from statek_sim.mcp.server import ServedTool
from statek_sim.providers.delivery import Styles
from statek_sim.providers.protocol import ChatStyleName
from statek_sim.providers.script import Reply, embedding
from statek_sim.providers.scripted import EVERYBODY
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.scenario.serving import FaultText, load_serve_file, root_of
from statek_sim.server.fault import (
    EmptyChoices,
    Fault,
    FaultRule,
    HttpError,
    Malformed,
    NoAnswerAtAll,
    NoUsage,
    NullUsage,
    Reset,
    SlowFirstByte,
    SlowTokens,
    Truncated,
    WrongContentType,
    check_together,
)
from statek_sim.server.recorded import replies_of

_INTERACTIONS: Final = re.compile(rb"^interactions:", re.MULTILINE)
"""Matches a key that occurs only in cassettes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Playable:
    """What a fake LLM server plays; the fields are those of a script file."""

    script: Mapping[str, Sequence[Reply]] | Sequence[Reply]
    faults: tuple[FaultRule, ...] = ()
    models: tuple[str, ...]
    styles: Styles | ChatStyleName | None = None
    count_usage: bool = True
    ignored: tuple[str, ...] = ()


def load_playable(path: Path, scenario_id: str | None = None) -> Playable:
    """Return what a fake LLM server plays, from the script file, scenario file or cassette at `path`.

    `scenario_id` selects one of several scenarios. Raises `BadScenario` or `BadCassette` for an invalid file,
    and `BadInput` for an unknown scenario.
    """
    if path.is_file() and _INTERACTIONS.search(source_of(path)):
        return _of_cassette(path)
    if root_of(path).child("scenarios") is not None:
        return _of_scenario(_chosen(path, scenario_id))
    if scenario_id is not None:
        raise BadInput(f"{path}: a script file has no scenarios; remove {scenario_id!r}")
    return _of_file(path)


def _chosen(path: Path, scenario_id: str | None) -> Scenario:
    scenarios = {scenario.id: scenario for scenario in load_or_fail([path])}
    if scenario_id is None and len(scenarios) == 1:
        return next(iter(scenarios.values()))
    if scenario_id not in scenarios:
        found = "several scenarios" if scenario_id is None else f"no scenario {scenario_id!r}"
        problem = f"{path}: {found}; name one of {', '.join(scenarios)}"
        raise BadInput(with_suggestion(problem, scenario_id or "", scenarios))
    return scenarios[scenario_id]


def _of_scenario(scenario: Scenario) -> Playable:
    agents = scenario.agents
    script = script_of(scenario)
    return Playable(
        # A single agent need not identify itself, because a client of a scenario's script sends no STATEK headers.
        script=next(iter(script.values())) if len(script) == 1 and len(agents) == 1 else script,
        models=tuple(dict.fromkeys(agent.model for agent in agents.values())),
        styles=next(iter(agents.values())).chat_style
        if len(agents) == 1
        else {role: agent.chat_style for role, agent in agents.items()},
    )


def _of_cassette(path: Path) -> Playable:
    replies = replies_of(parse(source_of(path), path))
    models = [match.equals for reply in replies if reply.condition and (match := reply.condition.model)]
    return Playable(
        script=replies,
        models=tuple(dict.fromkeys(model for model in models if model)) or ("gpt-4o",),
        count_usage=False,
    )


def _of_file(path: Path) -> Playable:
    written = load_serve_file(path)
    where = str(path)
    script = written.script
    faults = tuple(map(_rule, written.faults))
    try:
        check_together(faults)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    vectors = [embedding(*vector).on(text).forever() for text, vector in written.embeddings.items()]
    return Playable(
        script={
            **{key: [reply_at(where, entry) for entry in entries] for key, entries in script.items()},
            **({EVERYBODY: vectors} if vectors else {}),
        }
        if isinstance(script, dict)
        else [*(reply_at(where, entry) for entry in script), *vectors],
        faults=faults,
        models=written.models,
        styles=written.chat_style,
        count_usage=written.count_usage,
        ignored=written.ignored,
    )


def _rule(text: FaultText) -> FaultRule:
    return FaultRule(
        fault=_fault(text),
        positions=text.requests,
        rate=text.rate,
        seed=text.seed,
        when=condition_of(text.when),
        times=text.times,
    )


def _fault(text: FaultText) -> Fault:
    match text.kind:
        case "http":
            return HttpError(text.http, text.retry_after)
        case "slow_first_byte":
            return SlowFirstByte(text.slow_first_byte)
        case "slow_tokens":
            return SlowTokens(text.slow_tokens)
        case "reset":
            return Reset(text.reset)
        case "content_type":
            return WrongContentType(text.content_type)
        case kind:
            return _PLAIN[kind]


_PLAIN: Final[Mapping[str, Fault]] = {
    "silence": NoAnswerAtAll(),
    "truncated": Truncated(),
    "malformed": Malformed(),
    "empty_choices": EmptyChoices(),
    "null_usage": NullUsage(),
    "no_usage": NoUsage(),
}


_EXPECTED: Final = "a Registry, or a list of functions, Tools and ServedTools"


def served_tools(source: str, scenario: str | None = None) -> tuple[ServedTool, ...]:
    """Return the tools in a `module:attribute` or a scenario file, for an MCP server.

    The attribute is a `Registry`, a list of functions, `Tool`s or `ServedTool`s, or a function without
    arguments that returns one of these. `scenario` selects one of several scenarios in a file.
    """
    if source.endswith((".yaml", ".yml")):
        return ScriptedTools(_with_tools(Path(source), scenario)).served_tools()
    if ":" not in source:
        raise BadInput(f"{source!r}: expected module:attribute or a scenario file")
    found = attribute_at("mcp", source)
    if callable(found) and not isinstance(found, Iterable):
        try:
            found = found()
        except Exception as error:  # the user's code
            raise BadInput(
                f"{source!r} is a function that fails when called: {type(error).__name__}: {error}; "
                f"expected {_EXPECTED}, or a function without arguments that returns one"
            ) from error
    return tools_as_served(found, source)


def tools_as_served(found: object, source: str = "tools") -> tuple[ServedTool, ...]:
    """Convert a `Registry`, or a list of functions, `Tool`s and `ServedTool`s, to an MCP server's tools.

    Raises `BadInput` for anything else; `source` is its name in the error.
    """
    if isinstance(found, Registry):
        return served(found)
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise BadInput(f"{source!r} is a {type(found).__name__}, expected {_EXPECTED}")
    made: list[ServedTool] = []
    for tool in found:
        if isinstance(tool, ServedTool):
            made.append(tool)
        elif isinstance(tool, Tool) or callable(tool):
            made += served(Registry([tool]))
        else:
            raise BadInput(f"{source!r} contains {tool!r}, expected {_EXPECTED}")
    return tuple(made)


def _with_tools(path: Path, wanted: str | None) -> Scenario:
    chosen = _chosen(path, wanted)
    if chosen.engine != "agent":
        raise BadInput(
            f"{path}:{chosen.line}: scenario {chosen.id!r} is for the statek engine; only the agent engine has tools"
        )
    return chosen
