"""Expectations for a run's calls, in scenario files and eval files: the methods of `Trajectory` as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from pydantic import Discriminator, Field, JsonValue, Tag, field_validator, model_validator

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.observed_calls import NUMBERS, ExpectedCall, Order, Trajectory, value_fits
from statek_sim.scenario.part import Count, Items, Part, refused, shape
from statek_sim.values import JSON

_CONDITIONS: Final = ("$any", "$regex", "$range", "$subset")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on an argument, as written in a file."""

    kind: str
    operand: Any

    def __call__(self, given: object) -> bool:
        """Return whether an argument meets the condition."""
        match self.kind:
            case "$regex":
                return isinstance(given, str) and re.search(self.operand, given) is not None
            case "$range":
                low, high = self.operand
                return isinstance(given, int | float) and not isinstance(given, bool) and low <= given <= high
            case "$subset":
                return isinstance(given, Mapping) and all(
                    name in given and value_fits(wanted, given[name]) for name, wanted in self.operand.items()
                )
            case _:
                return True

    def __repr__(self) -> str:
        return f"{{{self.kind}: {self.operand!r}}}"


def conditions_in(value: JSON) -> Any:
    """Return an argument's expected value, with each condition in it as a `Condition`.

    A condition is a mapping with one key: `{$any: true}`, `{$regex: text}` (Python's `re.search`), `{$range: [low,
    high]}` (a number from low to high), `{$subset: {...}}` (a mapping with at least these values). Raises `BadInput`
    for an invalid condition.
    """
    if isinstance(value, list | tuple):
        return [conditions_in(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    kind = next(iter(value), "")
    if not str(kind).startswith("$"):
        return {key: conditions_in(item) for key, item in value.items()}
    operand = value[kind]
    if len(value) != 1:
        raise BadInput(f"{dict(value)!r}: a condition must be a mapping with one key: {kind!r}")
    if kind not in _CONDITIONS:
        hint = suggestion(str(kind), _CONDITIONS) or f" Known: {', '.join(_CONDITIONS)}"
        raise BadInput(f"{dict(value)!r} is not a condition.{hint}".removesuffix("."))
    if problem := _wrong(kind, operand):
        raise BadInput(f"{kind}: {problem}, got {operand!r}")
    return Condition(kind, conditions_in(operand))


def _wrong(kind: str, operand: Any) -> str | None:
    """Return what a condition's operand should be, or None if it is valid."""
    match kind:
        case "$any":
            return None if operand is True else "expected true"
        case "$subset":
            return None if isinstance(operand, Mapping) else "expected a mapping"
        case "$range":
            numbers = isinstance(operand, list | tuple) and len(operand) == 2
            right = numbers and all(type(one) in (int, float) for one in operand) and operand[0] <= operand[1]
            return None if right else "expected [low, high]"
    try:
        re.compile(operand)
    except (TypeError, re.error) as error:
        return f"expected a regular expression ({error})"
    return None


class CallExpect(Part):
    """An expected tool call."""

    name: str = Field(description="The tool's name, or a pattern such as `search_*`.")
    args: dict[str, JsonValue] | None = Field(
        default=None,
        description="The arguments; null: any. A value can be `{$any: true}`, `{$regex: text}`, "
        "`{$range: [low, high]}` or `{$subset: {...}}`.",
    )
    more: bool = Field(default=False, description="Whether arguments other than `args` are allowed.")

    @field_validator("args")
    @classmethod
    def _conditions(cls, args: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        try:
            conditions_in([*(args or {}).values()])
        except BadInput as error:
            raise refused(str(error)) from None
        return args

    def expected(self) -> ExpectedCall:
        """Return the expected call, for `Trajectory.expect_calls`."""
        args = {name: conditions_in(value) for name, value in (self.args or {}).items()}
        return ExpectedCall(self.name, args, self.more or self.args is None)


class OrderedCalls(Part):
    """Expected calls, and their order."""

    calls: Items[CallExpect] = Field(description="The calls.")
    order: Order = Field(
        default="exact",
        description="`exact`: these and no others. `subsequence`: in this order, possibly with others in between. "
        "`any`: each once, in any order, possibly with others.",
    )


CallsExpect = Annotated[
    Annotated[Items[CallExpect], Tag("<list>")] | Annotated[OrderedCalls, Tag("<mapping>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected a list of calls, or a mapping of calls, order",
    ),
]


class WithinExpect(Part):
    """A job's budget; tokens are those reported by the provider, or measured if it reports none."""

    tokens: Count | None = Field(default=None, description="Maximum number of tokens.")
    turns: Count | None = Field(default=None, description="Maximum number of model answers.")
    cost: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Maximum cost in US dollars."
    )
    prices: Items[Annotated[float, Field(ge=0)]] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="US dollars per million prompt tokens and per million completion tokens.",
    )

    @model_validator(mode="after")
    def _has_prices(self) -> Self:
        if self.tokens is None and self.turns is None and self.cost is None:
            raise refused("expected tokens, turns or cost")
        if (self.cost is None) != (self.prices is None):
            raise refused("cost and prices must be given together")
        return self


def check_word(run: Trajectory, word: str, wanted: Any) -> None:
    """Check one of the expectations `expect_calls`, `never_called`, `at_most`, `within` and `answer_quotes_results`.

    `wanted` is its value in a file. Raises an AssertionError that shows expected and actual calls.
    """
    match word:
        case "expect_calls":
            ordered = wanted if isinstance(wanted, OrderedCalls) else OrderedCalls(calls=wanted)
            run.expect_calls(*[one.expected() for one in ordered.calls], order=ordered.order)
        case "never_called":
            run.never_called(*wanted)
        case "at_most":
            for pattern, times in wanted.items():
                run.at_most(pattern, times)
        case "within":
            budget = wanted.model_dump(exclude_none=True)
            run.within(**budget)
        case _:
            run.answer_quotes_results(NUMBERS if wanted is True else wanted)
