"""Converts a scenario for engine two to the agent loop's inputs.

These are the settings, the scripted tools, and the people who answer questions. Scripted tool results are
data, which are used in order. A run must use all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final, NoReturn

from statek_sim.agent.approvals import word_of
from statek_sim.agent.budget import Budget, Prices
from statek_sim.agent.context.manager import ContextSettings
from statek_sim.agent.context.vram import MIB, fitting, known_models
from statek_sim.agent.effects import (
    SUMMARY_PROMPT,
    Ask,
    Delayed,
    PersonSaid,
    Question,
    SideModel,
    ToolFunction,
)
from statek_sim.agent.escalation import Judgement, Ladder, Level, Price, QualityCheck
from statek_sim.agent.harness import unanswered
from statek_sim.agent.memory import HandoffFile, discover, instructions_block, memory_block
from statek_sim.agent.simulation import Settle
from statek_sim.agent.slots import SlotRules
from statek_sim.agent.spec import AgentSpec, Choice, Layers
from statek_sim.agent.step_enforcement import Step, StepPlan
from statek_sim.agent.tools.tool import AfterCrash, Happened, Tool, tool_from, tool_of_schema
from statek_sim.backends.setup import attribute_at
from statek_sim.errors import (
    BadInput,
    BadScenario,
    BadStore,
    BadTool,
    NotAsked,
    ScriptExhausted,
    Unanswered,
    UnusedResults,
)
from statek_sim.mcp.client import Bounds, McpServerSpec, McpSource, Stdio
from statek_sim.mcp.fault import fault_from
from statek_sim.mcp.scripted import ScriptedConnection, served
from statek_sim.mcp.server import McpServer, ServedTool
from statek_sim.scenario.agent import (
    BudgetText,
    ContextText,
    EscalationText,
    LayersText,
    LevelText,
    PricesText,
    ServerText,
    SlotsText,
    StepsText,
    ToolResultText,
    ToolText,
    VramText,
)
from statek_sim.scenario.agent_checks import own_name, registered_name
from statek_sim.scenario.events import Event
from statek_sim.scenario.schema import AgentText, Scenario
from statek_sim.store.disk import MemoryDisk
from statek_sim.values import JSON


def ladder_of(text: EscalationText, checks: Iterable[QualityCheck]) -> Ladder:
    """Return the ladder in `text` with additional answer `checks`; raises `BadInput` for an invalid ladder."""
    return Ladder(
        levels=tuple(map(_level, text.levels)),
        checks=(*map(_contains, text.contains), *checks),
        backoff=text.backoff,
        longest=text.longest,
    )


def _level(text: LevelText) -> Level:
    return Level(
        name=text.name,
        model=text.model,
        attempts=text.attempts,
        strategy=(lambda task: f"{task}\n\n{text.adds}") if text.adds else None,
        carry=text.carry,
        price=None if text.price is None else Price(per_million=Decimal(str(text.price))),
        question=text.question,
        seconds=text.within,
    )


def _contains(wanted: str) -> QualityCheck:
    def check(task: str, answer: str) -> Judgement:
        return (
            Judgement(True, score=1.0)
            if wanted in answer
            else Judgement(False, f"{wanted!r} is not in the answer")
        )

    return check


def _project_layer(text: LayersText) -> str:
    """Return the project layer: its text, then the instruction files that apply to the agent's folder."""
    if not text.files:
        return text.project
    content = {path: file_text.encode() for path, file_text in text.files.items()}
    return instructions_block(discover(content.get, text.folder, own=text.project))


def _session_layer(text: LayersText) -> str:
    """Return the session layer: its text, then the memory block of the handoff file."""
    if not text.handoff:
        return text.session
    content = text.files.get(text.handoff)
    if content is None:
        raise BadInput(f"layers.handoff: {text.handoff!r} is not one of `files`")
    return "\n\n".join(filter(None, (text.session, _block(content))))


def _block(content: str) -> str:
    disk = MemoryDisk({"handoff.json": content.encode()})
    try:
        handoff = HandoffFile(disk, wall=lambda: "", path="handoff.json").resume()
    except BadStore as error:
        raise BadInput(f"layers.handoff: {error}") from error
    return "" if handoff is None else memory_block(handoff)


def slot_rules(text: SlotsText) -> SlotRules:
    """Return the rules for sharing slots among a scenario's runs."""
    return SlotRules(**text.model_dump())


def context_settings(text: ContextText, by: AgentSpec | None) -> ContextSettings:
    """Return a context's settings; `by` is the agent that writes summaries, or None for rule-based summaries."""
    return ContextSettings(
        budget=text.budget if text.vram is None else _tokens_in(text.vram),
        reserve=text.reserve,
        target=text.target,
        keep=text.keep,
        pinned=text.pinned,
        steps=text.steps,
        summary=None if by is None else side_model(by, SUMMARY_PROMPT),
        max_summary=text.max_summary,
    )


def _tokens_in(text: VramText) -> int:
    """Return how many context tokens fit into the GPU memory next to the model."""
    return fitting(known_models()[text.model], [free * MIB for free in text.free], kv=text.kv).tokens


def side_model(spec: AgentSpec, prompt: str) -> SideModel:
    """Return another agent's model for auxiliary requests, with that agent's prompt or, if there is none, `prompt`."""
    return SideModel(
        model=spec.model,
        role=spec.role,
        prompt=spec.layers.block() or prompt,
        provider=spec.provider,
        wire=spec.wire,
        temperature=spec.temperature,
    )


def layers_of(text: AgentText) -> Layers:
    """Return the layers in an agent's system block."""
    return Layers(
        rules=text.prompt,
        project=_project_layer(text.layers),
        session=_session_layer(text.layers),
        environment=text.layers.environment,
    )


def choice_of(text: AgentText) -> Choice:
    """Return the conditions that select an agent's tools."""
    names = tuple(name.rpartition(":")[2] for name in text.tools) if text.said("tools") else None
    offer = text.offer
    return Choice(names=names, task=offer.task, all_tags=offer.all_tags, any_tag=offer.any_tag)


def plan_of(text: StepsText) -> StepPlan:
    """Return the step plan for an agent's workflow."""
    steps = tuple(Step(**step.model_dump()) for step in text.steps)
    return StepPlan(steps=steps, order=text.order, helpers=text.helpers)


def prices_of(text: BudgetText | PricesText) -> Prices | None:
    """Return prices in US dollars per million tokens, or None unless both are given."""
    if text.prompt_price is None or text.completion_price is None:
        return None
    return Prices(prompt=Decimal(str(text.prompt_price)), completion=Decimal(str(text.completion_price)))


def budget_of(text: BudgetText) -> Budget:
    """Return the budget for an agent's run."""
    return Budget(
        tokens=text.tokens,
        cost=None if text.cost is None else Decimal(str(text.cost)),
        seconds=text.seconds,
        steps=text.steps,
        answer_tokens=text.answer_tokens,
        prices=prices_of(text),
        model_prices={
            model: prices for model, price in text.model_prices.items() if (prices := prices_of(price))
        },
    )


class People:
    """The open questions that people have to answer, oldest first."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Question, Settle]] = {}

    def asked(self, question: Question, reply: Settle) -> None:
        """Add a question; `reply` is called when one of the scenario's events answers it."""
        self._open[question.token] = (question, reply)

    def forget(self) -> None:
        """Discard all questions, because the process that asked them is dead."""
        self._open.clear()

    def act(self, event: Event, *, at: float) -> None:
        """Answer or refuse the oldest open question to which the event refers; raises `NotAsked` if there is none."""
        answer = PersonSaid("answered" if event.action == "answer" else "refused", event.message)
        for token, (question, reply) in list(self._open.items()):
            if question.job == event.target and event.question in question.text:
                del self._open[token]
                # An expired question is no longer open, even though its expiry was not reported here.
                if reply(word_of(question, answer)):
                    return
        meant = f"question with {event.question!r}" if event.question else "question"
        raise NotAsked(
            f"at {at:g} s, a person answers job {event.target!r}, which has no open {meant} at that time; "
            "move the event to a time when a question is open"
        )

    def check_answered(self) -> None:
        """Raise `Unanswered` if a run is still waiting for an answer to a question that never expires."""
        forever = [question for question, _ in self._open.values() if question.seconds is None]
        if forever:
            raise Unanswered(
                f"{unanswered(forever)}: add `- {{at: SECOND, answer: {forever[0].job}, message: TEXT}}` to `events`"
            )


_ERROR: Final = re.compile(r"([A-Z][A-Za-z0-9_]*): (.*)", re.DOTALL)


class ScriptedTools:
    """A run's tools, and the state that results may set and use."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._state: dict[str, JSON] = {}
        self._lanes: dict[str, _Lane] = {}
        self._on_servers: dict[str, list[Tool]] = {name: [] for name in scenario.servers}
        self.tools = tuple(self._made())
        """The scenario's `tools` under their registered names, except tools on `servers`."""
        self._servers = {name: self._server(name, text) for name, text in scenario.servers.items()}

    def _made(self) -> Iterator[Tool]:
        for name, text in self._scenario.tools.items():
            served_by = self._on_servers.get(text.server or "")
            code = _person if text.asks else self._code(name, text)
            try:
                made = tool_of_schema(
                    registered_name(name, text) if served_by is None else own_name(name, text),
                    text.description,
                    text.parameters,
                    code,
                    tags=text.tags,
                    timeout=text.timeout,
                )
            except BadTool as error:
                raise BadScenario(f"{self._scenario.place}: {error}") from error
            if text.asks:
                made = replace(made, asks=Ask(text=text.asks, seconds=text.within))
            if text.access or text.sandboxed:
                made = replace(made, access=text.access, sandboxed=text.sandboxed)
            if text.after_crash != "ask":
                made = replace(made, after_crash=self._after_crash(name, text))
            if served_by is not None:
                served_by.append(made)
            else:
                yield made if text.server is None else replace(made, server=text.server)

    def _after_crash(self, name: str, text: ToolText) -> AfterCrash:
        match text.after_crash:
            case "happened":
                return lambda **arguments: Happened(self._lanes[name].last)
            case "did_not_happen":
                return lambda **arguments: None
            case _:
                return "again"

    def _server(self, name: str, text: ServerText) -> McpServer:
        faults = [fault_from(fault) for fault in text.faults]
        return McpServer(served(self._on_servers[name]), name=name, faults=faults, listed=text.listed)

    def served_tools(self) -> tuple[ServedTool, ...]:
        """Return all of the scenario's tools for one MCP server; raises `BadInput` if two tools have the same name."""
        on_servers = [tool for tools in self._on_servers.values() for tool in tools]
        return served([*self.tools, *on_servers])

    def sources(self) -> Iterator[McpSource]:
        """Yield a connection to each of the scenario's MCP servers."""
        for name, text in self._scenario.servers.items():
            bounds = Bounds(call=text.call, text=text.text, restarts=text.restarts)
            at = Stdio(command=name)
            spec = McpServerSpec(name=name, at=at, prefix=text.prefix, bounds=bounds)
            yield McpSource(ScriptedConnection(spec, self._servers[name]))

    def function(self, name: str) -> Tool:
        """Return the tool at `module:attribute`, which is created from a function or is already a `Tool`."""
        found = attribute_at(self._scenario.place, name)
        if isinstance(found, Tool):
            return found
        if not callable(found):
            raise BadScenario(f"{self._scenario.place}: {name!r} is not a function")
        return tool_from(found)

    def check_finished(self) -> None:
        """Raise `UnusedResults` if tool results or server faults were not used."""
        left = [reply for lane in self._lanes.values() for reply in lane.left()]
        for name, server in self._servers.items():
            left += [f"server {name} fault {fault}" for fault in server.faults.unused()]
        if left:
            raise UnusedResults(
                f"some results or faults for scripted tools were never used: {'; '.join(left)}; "
                "remove them, or use `repeat: forever` where they are optional"
            )

    def _code(self, name: str, text: ToolText) -> ToolFunction:
        if text.call:
            found = attribute_at(self._scenario.place, text.call)
            if not callable(found):
                raise BadScenario(
                    f"{self._scenario.place}: tools.{name}.call: {text.call!r} is not a function"
                )
            code: ToolFunction = found
            return code
        results = text.results
        if not text.said("results"):
            end: dict[str, Any] = {"error": text.error} if text.said("error") else {"result": text.result}
            results = (ToolResultText(**end, takes=text.takes, repeat="forever"),)
        lane = self._lanes[name] = _Lane(name, results, exact=text.said("results"))
        return self._scripted(lane)

    def _scripted(self, lane: _Lane) -> Callable[..., object]:
        state = self._state

        def scripted(**arguments: JSON) -> object:
            entry = lane.take(arguments)
            error = _error(entry.error) if entry.said("error") else None
            value = None if error is not None else _filled(entry.result, arguments, state)
            lane.last = value
            state.update({key: _filled(item, arguments, state) for key, item in entry.sets.items()})
            if entry.takes:
                return Delayed(entry.takes, value, error)
            if error is not None:
                raise error
            return value

        return scripted


class _Lane:
    """A scripted tool's remaining results."""

    def __init__(self, name: str, results: tuple[ToolResultText, ...], *, exact: bool) -> None:
        self._name = name
        self._exact = exact
        self._calls = 0
        self.last: object = None
        """The last result, which represents the outside effect of the tool's work."""
        self._left: list[list[Any]] = [
            [entry, None if entry.repeat == "forever" else int(entry.repeat), 0] for entry in results
        ]

    def take(self, arguments: Mapping[str, JSON]) -> ToolResultText:
        """Return the first remaining result for these arguments; raises `ScriptExhausted` if there is none."""
        self._calls += 1
        for slot in self._left:
            entry, times, given = slot
            if times is not None and given >= times:
                continue
            if entry.when is None or all(
                key in arguments and arguments[key] == value for key, value in entry.when.items()
            ):
                slot[2] += 1
                found: ToolResultText = entry
                return found
        raise ScriptExhausted(
            f"tool {self._name!r} was called (call {self._calls}) with {json.dumps(dict(arguments))}, but "
            "no remaining result matches; add one to `results`, or use `repeat: forever`"
        )

    def left(self) -> Iterator[str]:
        """Yield the results that were not used often enough.

        A result that repeats forever must be used at least once.
        """
        for number, (_, times, given) in enumerate(self._left, start=1):
            if self._exact and given < (1 if times is None else times):
                yield f"{self._name} result {number}"


def _person(**_: JSON) -> NoReturn:
    raise AssertionError("a tool that asks a person has no code to run")


def _filled(value: JSON, arguments: Mapping[str, JSON], state: Mapping[str, JSON]) -> JSON:
    """Return a result with `$argument` and `$state` replaced by their values, or by null if they have no value."""
    if isinstance(value, list):
        return [_filled(item, arguments, state) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (key, name), *_ = value.items()
        if key == "$argument":
            return arguments.get(str(name))
        if key == "$state":
            return state.get(str(name))
    return {key: _filled(item, arguments, state) for key, item in value.items()}


def _error(text: str) -> Exception:
    """Return the exception for a scripted error `Type: message`, or a RuntimeError for a string without a type."""
    found = _ERROR.fullmatch(text)
    if found is None:
        return RuntimeError(text)
    made: Exception = type(found[1], (Exception,), {})(found[2])
    return made
