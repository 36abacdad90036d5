"""The format of eval files, as pydantic models that reject unknown keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Discriminator, Field, JsonValue, Tag, WithJsonSchema, model_validator

from statek_sim.scenario.part import CALLABLE_PATTERN, Count, Id, Items, Part, Positive, key, refused

FORMAT: Final = "pytest-statek/evals@1"
"""The format's name and version."""

Key = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
"""A name that expressions may use."""

Tier = Literal["easy", "medium", "hard"]

Value = JsonValue
"""Any value; a string that starts with `=` is an expression, one with `{expression}` in it a template."""

Expression = Annotated[str, Field(min_length=1)]
"""An expression, without the `=`."""


ListExpression = Annotated[str, Field(pattern="^=")]
"""A string that is an expression."""


class Draw(Part):
    """A value that differs by seed: exactly one of `one_of`, `between` and `code`."""

    one_of: Items[Value] | ListExpression | None = key(
        None, "One of these values, or of the list that `=expression` returns."
    )
    between: Items[int | float] | None = key(
        None,
        "A number from the first to the second, inclusive; a decimal number if either is a decimal number.",
    )
    step: int = key(
        1, "With whole numbers in `between`, the result is the first one plus a multiple of this.", ge=1
    )
    code: str | None = key(
        None, "A string: # is replaced by a digit, ? by a capital letter, % by a digit of base 16."
    )
    several: Positive | None = key(None, "A list of this many different values.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(kind is not None for kind in (self.one_of, self.between, self.code)) != 1:
            raise refused("expected exactly one of 'one_of', 'between' and 'code'")
        if isinstance(self.one_of, tuple) and len(self.one_of) < 2:
            raise refused("one_of: expected at least two values")
        if self.between is not None and not (len(self.between) == 2 and self.between[0] < self.between[1]):
            raise refused("between: expected two numbers with the smaller one first")
        return self


def _kind(value: object) -> str:
    """Return `draw` for a mapping that contains one of a draw's keys, and `value` for anything else in a file."""
    drawn = isinstance(value, Draw) or (isinstance(value, Mapping) and not value.keys().isdisjoint(_DRAWN))
    return "draw" if drawn else "value"


_DRAWN: Final = frozenset({"one_of", "between", "code"})

_PLAIN: Final = {"not": {"type": "object", "anyOf": [{"required": [key]} for key in sorted(_DRAWN)]}}

Varied = Annotated[
    Annotated[Draw, Tag("draw")] | Annotated[Value, Tag("value"), WithJsonSchema(_PLAIN)],
    Discriminator(_kind),
]
"""A value, or a draw that gives one."""


class MoreRows(Part):
    """Generated table rows: `row` has a draw or a value for each column; `n` is the row's number, from 1."""

    count: Positive | Items[Positive] = Field(description="Number of rows, or its minimum and maximum.")
    row: dict[Key, Varied] = Field(description="Columns in order; each may use those before it.")

    @model_validator(mode="after")
    def _from_to(self) -> Self:
        if isinstance(self.count, tuple) and not (len(self.count) == 2 and self.count[0] < self.count[1]):
            raise refused("count: expected a number, or two numbers with the smaller one first")
        return self


class TableText(Part):
    """A table in the world: its rows at the start."""

    rows: Items[dict[Key, Value]] = key((), "Literal rows.")
    more: Items[MoreRows] = key((), "Generated rows.")
    unique: Items[Key] = key((), "Columns whose generated values are unique.")
    order: Literal["shuffled", "written"] = key("shuffled", "The order of the rows.")


class Change(Part):
    """A change to a table: exactly one of `insert`, `update` and `delete`."""

    insert: Key | None = None
    update: Key | None = None
    delete: Key | None = None
    row: dict[Key, Value] | None = key(None, "The inserted row.")
    where: Expression | None = key(None, "Condition that selects rows; `row` is the current row.")
    set: dict[Key, Value] | None = key(None, "The new values, keyed by column.")
    each: str | None = key(None, "With `insert`: `x in EXPRESSION` inserts one row for each.", alias="for")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in ("insert", "update", "delete") if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise refused("expected exactly one of 'insert', 'update' and 'delete'")
        needs = {"insert": {"row"}, "update": {"where", "set"}, "delete": {"where"}}[kinds[0]]
        if self.each is not None and self.insert is None:
            raise refused("'for' belongs to an 'insert'; 'where' selects the rows to update or delete")
        given = {key for key in ("row", "where", "set") if getattr(self, key) is not None}
        if given != needs:
            raise refused(f"{kinds[0]}: expected {' and '.join(sorted(needs))} with it, and nothing else")
        return self

    @property
    def table(self) -> str:
        """The name of the changed table."""
        return self.insert or self.update or self.delete or ""


class Refuses(Part):
    """When a tool refuses, and with which message."""

    when: Expression
    says: str


class Fails(Part):
    """When a tool fails: on its first calls, or on calls for which `when` holds."""

    first: Positive | None = key(None, "Number of calls that fail before the tool works.")
    when: Expression | None = key(
        None, "Condition on the arguments of failing calls; without `first`, they always fail."
    )
    says: str
    applied: bool | Expression = key(False, "Whether a failing call makes its changes anyway.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.first is None and self.when is None:
            raise refused("expected 'first' or 'when'")
        return self


class ToolText(Part):
    """A tool that reads and changes the world: its refusals, failures, changes and result."""

    description: str
    parameters: dict[Key, str | dict[str, Value]] = key(dict, "A type or a JSON Schema for each argument.")
    optional: Items[Key] = key((), "Optional arguments, which are null if omitted.")
    refuses: Items[Refuses] = ()
    fails: Fails | None = None
    changes: Items[Change] = ()
    gives: Value = Field(description="The tool's result; `calls` is the number of earlier calls.")
    distractor: bool = key(False, "Not useful for the task; the agent should not call it.")


class Approval(Part):
    """A call that a person must allow."""

    asks: str = key("", "The question; may contain {argument} placeholders.")
    allows: Expression = key("True", "Whether the person allows it; may use the arguments and the world.")
    because: str = key("", "The person's reason for a refusal.")


class WantedCall(Part):
    """A call that must succeed; `with` are the arguments that matter: values, or conditions (`{$regex: text}`)."""

    tool: Key
    arguments: dict[Key, Value] = Field(default_factory=dict, alias="with")
    each: str | None = key(None, "`x in EXPRESSION`: one call for each, in any order.", alias="for")
    condition: Expression | None = key(None, "Only if this holds.", alias="if")


class PlanStep(Part):
    """A step in a plan: exactly one of `call`, `together`, `do`, `let` and `answer`."""

    call: Key | None = key(None, "A tool.")
    arguments: dict[Key, Value] = Field(default_factory=dict, alias="with")
    bind: Key | None = key(None, "The name of the result in later steps.", alias="as")
    each: str | None = key(
        None, "`x in EXPRESSION`: one call for each, all in one turn; the result is a list.", alias="for"
    )
    again: Expression | None = key(
        None,
        "The call is repeated while this holds; `last` is its latest result, and `n` counts from 1.",
        alias="while",
    )
    condition: Expression | None = key(None, "Only if this holds.", alias="if")
    otherwise: Items[PlanStep] = key(
        (), "Steps to take if the call fails; without them, the call is retried."
    )
    together: Items[PlanStep] = key((), "Calls made in one turn.")
    do: Items[PlanStep] = key((), "Steps to take for each item of `for`, one item after another.")
    unless: WantedCall | None = key(
        None, "The step is skipped if this call is in the history, because its effect is known."
    )
    let: dict[Key, Value] | None = key(None, "Names for values.")
    answer: str | None = key(None, "The final answer.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [self.call is not None, self.let is not None, self.answer is not None]
        if sum([*kinds, bool(self.together), bool(self.do)]) != 1:
            raise refused("expected exactly one of 'call', 'together', 'do', 'let' and 'answer'")
        if bool(self.do) and self.each is None:
            raise refused("'do' needs a 'for'")
        if self.call is None and (self.arguments or self.bind or self.again or self.otherwise):
            raise refused("'with', 'as', 'while' and 'otherwise' belong to a 'call'")
        if self.again is not None and self.each is not None:
            raise refused("'for' and 'while' cannot be combined in one call")
        return self


class Cited(Part):
    """A value that the final answer must cite."""

    value: Value
    found_by: Key | None = key(
        None, "The tool whose result must have shown it; default: any tool.", alias="from"
    )
    computed: bool = key(False, "Calculated from results, so no result shows it.")


class CheckText(Part):
    """The expected state at the end. Anything not mentioned here must not have changed."""

    expect_calls: Items[WantedCall | Items[WantedCall]] = key(
        (), "Calls that must succeed, in this order; calls in an inner list may come in any order."
    )
    never_called: Items[str] = key(
        (), "Tools whose calls must not succeed, by name or pattern, such as `delete_*`."
    )
    changes: Items[Change] = key((), "Changes between the world at the start and at the end.")
    ignore: Items[Key] = key((), "Tables that may change.")
    cites: Items[Cited] = key((), "Values that the answer must cite.")
    avoids: Items[Value] = key((), "Values that the answer must not contain.")
    at_most: dict[str, Count] = key(dict, "Maximum number of calls, keyed by tool name or pattern.")
    python: str | None = key(
        None,
        "Your own check function, `module:attribute`; it takes a FinishedRun and returns problems as strings.",
        pattern=CALLABLE_PATTERN,
    )

    @model_validator(mode="after")
    def _evidence(self) -> Self:
        if self.python is not None:
            return self
        if not self.expect_calls:
            raise refused(
                "expect_calls: expected one or more, or python, because a run without calls provides no evidence"
            )
        if not self.cites:
            raise refused(
                "cites: expected one or more, or python, because an answer that cites nothing could be anything"
            )
        return self


class WrongScript(Part):
    """A script that must fail, and why."""

    id: Id
    why: str
    plan: Items[PlanStep]


class EvalText(Part):
    """One eval: a task, a world with tools, a plan that solves it, its check, and scripts that must fail."""

    id: Id
    tier: Tier
    capability: Id = Field(description="The ability that it tests: single-call, data-flow, recovery, ...")
    title: str
    source: str | None = key(None, "The eval's source, if it was not written for this suite.")
    proves: Items[str] = key((), "Ids of normative statements that it proves.")
    vary: dict[Key, Varied] = key(dict, "Values that differ by seed, keyed by name.")
    world: dict[Key, TableText] = Field(default_factory=dict)
    facts: dict[Key, Value] = key(dict, "Values from the initial world, keyed by name, for the check.")
    tools: dict[Key, ToolText]
    prompt: str = key("", "The system prompt.")
    task: str
    approvals: dict[Key, Approval] = Field(default_factory=dict)
    max_iterations: Positive = 12
    context: Positive | None = key(None, "Maximum tokens of a prompt.")
    plan: Items[PlanStep]
    check: CheckText
    wrong: Items[WrongScript]


class EvalFile(Part):
    """An eval file."""

    evals: Items[EvalText]


def evals_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema for eval files (draft 2020-12), for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':').replace('@', ':')}",
        **EvalFile.model_json_schema(),
        "title": f"{FORMAT}: tasks that show what a harness is worth",
    }


def arguments_schema(tool: ToolText) -> Mapping[str, Any]:
    """Return a JSON Schema for a tool's arguments."""
    properties = {
        name: {"type": schema} if isinstance(schema, str) else dict(schema)
        for name, schema in tool.parameters.items()
    }
    required = [name for name in tool.parameters if name not in tool.optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
