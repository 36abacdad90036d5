"""The world for one run: tables, tools that read and change the tables, a call log, and a person who approves calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from statek_sim.agent.approvals import question_about
from statek_sim.agent.effects import Ask, PersonSaid, Question, ToolCall, ToolOutcome
from statek_sim.agent.tools.tool import Tool
from statek_sim.evals.expression import Scope, Unanswerable, each, evaluate, filled, resolved
from statek_sim.evals.outcome import Called, Record
from statek_sim.evals.random_draws import Draws
from statek_sim.evals.schema import Change, Draw, Fails, MoreRows, TableText, ToolText
from statek_sim.values import JSON

if TYPE_CHECKING:
    from statek_sim.evals.schema import Approval


Row = dict[str, Any]
Tables = dict[str, list[Row]]


class ToolError(Exception):
    """Raised if a tool refuses or fails; the message is for the model."""


class World:
    """A run's tables, and the tools that use them. `log` contains every call that reached the world, in order.

    `before` are the tables at the start, which never change.
    """

    def __init__(self, tools: Mapping[str, ToolText], before: Tables) -> None:
        self.before = before
        self.tables: Tables = {name: [dict(row) for row in rows] for name, rows in before.items()}
        self.log: list[Called] = []
        self._tools = tools
        self._counts: dict[str, int] = {}
        self._failed: dict[str, int] = {}

    def tools(self, schemas: Mapping[str, Mapping[str, JSON]]) -> list[Tool]:
        """Return this world's tools; `schemas` contains the JSON Schema for each tool's arguments."""
        return [
            Tool(
                name=name,
                description=tool.description,
                parameters=schemas[name],
                run=self._runner(name),
            )
            for name, tool in self._tools.items()
        ]

    def _runner(self, name: str) -> Callable[..., str]:
        def run(**arguments: Any) -> str:
            return self.call(name, arguments)

        return run

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool, log the call, and return the result as text.

        Raises `ToolError` if the tool refuses, fails, or does not exist.
        """
        try:
            result = self._result(name, arguments)
        except ToolError as error:
            self.log.append(Called(name=name, arguments=dict(arguments), error=str(error)))
            raise
        text = result if isinstance(result, str) else _json(name, result)
        self.log.append(Called(name=name, arguments=dict(arguments), result=text))
        return text

    def _result(self, name: str, arguments: Mapping[str, Any]) -> Any:
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(f"there is no tool {name!r}")
        missing = [key for key in tool.parameters if key not in arguments and key not in tool.optional]
        unknown = [key for key in arguments if key not in tool.parameters]
        if missing or unknown:
            wrong = f"misses {', '.join(missing)}" if missing else f"has no argument {', '.join(unknown)}"
            raise ToolError(f"the call to {name} {wrong}")
        count = self._counts.get(name, 0)
        self._counts[name] = count + 1
        given = {**dict.fromkeys(tool.parameters), **arguments, "calls": count}
        try:
            return self._done(name, tool, given)
        except Unanswerable as error:  # arguments of a type that the tool does not support
            raise ToolError(f"{name} cannot do that: {error}") from None

    def _done(self, name: str, tool: ToolText, given: Scope) -> Any:
        for refusal in tool.refuses:
            if evaluate(refusal.when, self.scope(given)):
                raise ToolError(filled(refusal.says, self.scope(given)))
        fails = tool.fails is not None and self._fails(name, tool, given)
        if not fails or (tool.fails is not None and self._applied(tool.fails, given)):
            for change in tool.changes:
                apply(change, self.tables, self.scope(given))
        if fails and tool.fails is not None:
            raise ToolError(filled(tool.fails.says, self.scope(given)))
        return resolved(tool.gives, self.scope(given))

    def _fails(self, name: str, tool: ToolText, given: Scope) -> bool:
        rule = tool.fails
        assert rule is not None
        if rule.when is not None and not evaluate(rule.when, self.scope(given)):
            return False
        failed = self._failed.get(name, 0)
        if rule.first is not None and failed >= rule.first:
            return False
        self._failed[name] = failed + 1
        return True

    def _applied(self, rule: Fails, given: Scope) -> bool:
        applied = rule.applied
        return applied if isinstance(applied, bool) else bool(evaluate(applied, self.scope(given)))

    def refused(self, name: str, arguments: Mapping[str, Any], reason: str) -> None:
        """Log a call that a person refused, which never reached the tool."""
        self.log.append(Called(name=name, arguments=dict(arguments), error=reason))

    def scope(self, given: Scope) -> Scope:
        """Return the values of the names in a tool's expressions: the current tables and the tool's arguments."""
        return {**self.tables, **given}

    def record(self, answer: str | None, stop: str, *, model_calls: int = 0) -> Record:
        """Return the record of the run, with the calls in this world's log."""
        return Record(answer=answer, stop=stop, calls=tuple(self.log), model_calls=model_calls)


def _json(name: str, result: Any) -> str:
    try:
        return json.dumps(result, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Unanswerable(f"tool {name}: its result is not JSON: {error}") from None


def apply(change: Change, tables: Tables, scope: Scope) -> None:
    """Apply a change to its table. Expressions may use the names in `scope`, and `row` for the current row."""
    rows = tables[change.table]
    if change.insert is not None:
        rows += [
            resolved(change.row, inner)
            for inner in ([scope] if change.each is None else each(change.each, scope))
        ]
        return
    assert change.where is not None, "the format demands it"
    wanted = [bool(evaluate(change.where, {**scope, "row": row})) for row in rows]
    if change.delete is not None:
        tables[change.table] = [row for row, goes in zip(rows, wanted, strict=True) if not goes]
        return
    tables[change.table] = [
        {**row, **resolved(change.set, {**scope, "row": row})} if hit else row
        for row, hit in zip(rows, wanted, strict=True)
    ]


# -- the start of a world -------------------------------------------------------------------------------------


def drawn(name: str, value: Draw | Any, draws: Draws, scope: Scope) -> Any:
    """Return a value from an eval file: a `Draw` is drawn under its name, and any other value is evaluated."""
    if not isinstance(value, Draw):
        return resolved(value, scope)
    draw = partial(_one_drawn, value=value, draws=draws, scope=scope)
    if value.several is None:
        return draw(name)
    try:
        return draws.distinct(name, draw, value.several)
    except (LookupError, TypeError) as error:  # lists and mappings are not hashable
        raise Unanswerable(f"{name}: several: {error}") from None


def _one_drawn(name: str, *, value: Draw, draws: Draws, scope: Scope) -> Any:
    if value.one_of is not None:
        options = resolved(value.one_of, scope) if isinstance(value.one_of, str) else value.one_of
        if not isinstance(options, list | tuple) or not options:
            raise Unanswerable(f"{name}: one_of: expected a list that is not empty, got {options!r:.60}")
        return resolved(draws.pick(name, options), scope)
    if value.code is not None:
        return draws.code(name, filled(value.code, scope))
    assert value.between is not None, "the format demands it"
    low, high = value.between
    if isinstance(low, float) or isinstance(high, float):
        cents = round((high - low) * 100)
        return round(low + draws.number(name, cents + 1) / 100, 2)
    return low + value.step * draws.number(name, (high - low) // value.step + 1)


def varied(vary: Mapping[str, Any], draws: Draws) -> dict[str, Any]:
    """Return the values that differ by seed; each may use earlier ones."""
    scope: dict[str, Any] = {}
    for name, value in vary.items():
        scope[name] = drawn(name, value, draws, scope)
    return scope


def begun(world: Mapping[str, TableText], draws: Draws, vary: Scope) -> Tables:
    """Return the tables at the start of a run; each may use earlier ones."""
    tables: Tables = {}
    for name, table in world.items():
        scope = {**vary, **tables}
        rows = [resolved(row, scope) for row in table.rows]
        for part, more in enumerate(table.more):
            rows += _made(f"{name}/{part}", more, table.unique, rows, draws, scope)
        tables[name] = rows if table.order == "written" else draws.shuffled(name, rows)
    return tables


def _made(
    name: str, more: MoreRows, unique: Sequence[str], there: Sequence[Row], draws: Draws, scope: Scope
) -> list[Row]:
    count = more.count if isinstance(more.count, int) else None
    if count is None:
        low, high = more.count  # type: ignore[misc]  # the format requires two
        count = low + draws.number(f"{name}/count", high - low + 1)
    taken = {
        key: {cell for row in there if isinstance(cell := row.get(key), str | int | float)} for key in unique
    }
    made: list[Row] = []
    for number in range(1, count + 1):
        row: Row = {}
        for key, value in more.row.items():
            row[key] = _cell(
                f"{name}/{number}/{key}", value, taken.get(key), draws, {**scope, "n": number, **row}
            )
        made.append(row)
    return made


def _cell(name: str, value: Any, taken: set[Any] | None, draws: Draws, scope: Scope) -> Any:
    for tried in range(200):
        found = drawn(f"{name}/{tried}" if tried else name, value, draws, scope)
        if taken is None:
            return found
        if not isinstance(found, str | int | float):
            raise Unanswerable(f"{name}: a unique column: expected strings or numbers, got {found!r:.60}")
        if found not in taken:
            taken.add(found)
            return found
    raise Unanswerable(f"{name}: no unused values left; use a wider range of values")


class Approving:
    """A gate for calls that need approval, and the person who approves them.

    Add it as a harness's last gate, and pass its `person` method as the harness's person. For an agent without gates,
    call `allows`, which gives the same decisions.
    """

    def __init__(
        self, approvals: Mapping[str, Approval], world: World, parameters: Mapping[str, Any]
    ) -> None:
        self._approvals = approvals
        self._world = world
        self._parameters = parameters
        self._about: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        """Return the question to ask about a call that needs approval, or None for any other call."""
        approval = self._approvals.get(call.name)
        if approval is None:
            return None
        ask = question_about(Ask(text=approval.asks, confirms=True), call)
        self._about[ask.text] = call.name, call.arguments
        return ask

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Do nothing, because a person is asked about every call."""

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Do nothing, because no permission was granted."""

    def person(self, question: Question) -> PersonSaid:
        """Answer one of this gate's questions; raises `LookupError` for any other."""
        if question.text not in self._about:
            raise LookupError(
                f"no entry in `approvals` asks {question.text!r}; in an eval, the person answers only those questions"
            )
        return self.allows(*self._about[question.text])

    def allows(self, tool: str, arguments: Mapping[str, Any]) -> PersonSaid:
        """Return the person's reply about a call, logging a refusal. Calls that need no approval are allowed."""
        approval = self._approvals.get(tool)
        if approval is None:
            return PersonSaid("answered", "yes")
        scope = self._world.scope({**dict.fromkeys(self._parameters[tool].parameters), **arguments})
        if evaluate(approval.allows, scope):
            return PersonSaid("answered", "yes")
        because = filled(approval.because, scope)
        self._world.refused(tool, arguments, because)
        return PersonSaid("refused", because)
