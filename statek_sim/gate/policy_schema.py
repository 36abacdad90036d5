"""The types and the JSON Schema of policy files, and pydantic's problems in words for people."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, Strict, ValidationError
from pydantic_core import ErrorDetails

from statek_sim.did_you_mean import suggestion
from statek_sim.input_files import toml_in
from statek_sim.scenario.locate import shown as shown_value
from statek_sim.scenario.problem import dotted

FORMAT: Final = "statek-sim/policy@1"

Percent = Annotated[int, Field(ge=0, le=99)]
Positive = Annotated[int, Field(ge=1)]
Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Strict(False)]
Money = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SelectText(_Part):
    """Which scenarios a rule judges; nothing said: every one."""

    tags: Words = Field(default=(), description="Scenarios with one of these tags.")
    scenarios: Words = Field(default=(), description="Scenarios with one of these names: suite/id, or id.")
    without_tags: Words = Field(default=(), description="But none with one of these tags.")


class HeadroomText(_Part):
    """The share of each limit that has to be left, in percent; a limit that is not said may be used up."""

    max_turns: Percent = Field(default=0, description="Of the LLM turns.")
    max_exceptions: Percent = Field(default=0, description="Of the exceptions in total.")
    max_consecutive_exceptions: Percent = Field(
        default=0, description="Of the longest streak of failing turns."
    )
    max_token_usage: Percent = Field(default=0, description="Of the estimated tokens.")


class RuleText(_Part):
    """One rule."""

    name: Annotated[str, Field(min_length=1)] = Field(description="The demand in the team's words.")
    select: SelectText = Field(description="Which scenarios it judges.")
    must: Literal["finish", "stop"] | None = Field(
        default=None, description="finish: every job comes to its own end. stop: a limit stops what goes bad."
    )
    headroom_percent: Percent | HeadroomText | None = Field(
        default=None, description="With finish: the share that has to be left, of every limit or by limit."
    )
    within_turns: Positive | None = Field(
        default=None, description="With stop: LLM turns at most, the one on which the job goes bad included."
    )
    within_tokens: Positive | None = Field(
        default=None, description="With stop: measured tokens at most, from that turn on."
    )
    within_cost: Money | None = Field(
        default=None, description='With stop: cost at most, from that turn on, as text: "0.05". Needs prices.'
    )
    claims_leak: bool = Field(default=True, description="false: no claim may leak.")
    max_crash_tokens: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Measured tokens at most that one crash of the worker adds, wherever it dies.",
    )
    max_crash_cost: Money | None = Field(
        default=None, description='Cost at most that one crash adds, as text: "0.05". Needs prices.'
    )


class BaselineText(_Part):
    """What the committed baseline allows."""

    worse_by_percent: Annotated[int, Field(ge=0)] = Field(
        default=0, description="How much worse than the baseline a figure may get."
    )


class PolicyText(_Part):
    """A policy file."""

    version: Literal[1] = Field(default=1, description="Version of this format.")
    prices: str | None = Field(
        default=None, description="Folder of STATEK's price files, from the policy's folder."
    )
    rule: Annotated[tuple[RuleText, ...], Strict(False), Field(min_length=1)] = Field(
        description="The rules; each judges every scenario that it selects."
    )
    baseline: BaselineText = Field(default_factory=BaselineText, description="How baselines are compared.")


def policy_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of policy files (draft 2020-12), for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':').replace('@', ':')}",
        **PolicyText.model_json_schema(),
        "title": f"{FORMAT}: what a team demands of its presets",
    }


Keypath = tuple[str | int, ...]


def lines_of(text: str, keypaths: Iterable[Keypath]) -> list[int]:
    """Return the line, from 1, of the statement that first gives each path a value; `text` is valid TOML.

    A statement of several lines stands at its first. A path that is nowhere stands where its longest known part does.

    TOML is read from the top and nothing is said twice, so that the lines before a statement are a text of their own:
    the statement is where a path first exists in one.
    """
    wanted = list(keypaths)
    found: dict[Keypath, int] = {}
    for begin, read in _beginnings(text):
        for path in wanted:
            for length in range(len(path) + 1):
                if path[:length] not in found and _has(read, path[:length]):
                    found[path[:length]] = begin
    return [
        max((found[path[:n]] for n in range(len(path) + 1) if path[:n] in found), default=1)
        for path in wanted
    ]


def _beginnings(text: str) -> Iterator[tuple[int, object]]:
    """Yield, statement by statement, the line on which it begins and what the text says up to its end."""
    lines = text.splitlines(keepends=True)
    begin = 1
    for end in range(1, len(lines) + 1):
        try:
            yield begin, toml_in("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            # In the middle of a statement, which began after the last line with which the text was whole.
            continue
        begin = end + 1


def _has(value: object, keypath: Keypath) -> bool:
    for part in keypath:
        match value:
            case dict() if part in value:
                value = value[part]
            case list() if isinstance(part, int) and part < len(value):
                value = value[part]
            case _:
                return False
    return True


_EXPECTED: Final = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_BOUNDS: Final = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}


_ARMS: Final = ("constrained-int", "HeadroomText")
"""What pydantic adds to the path of a value that may be one thing or another."""

Finding = tuple[Keypath, str]


Inner = Mapping[str, type[BaseModel]]
"""What stands under a key, for keys that may be meant; under the empty one the whole file."""

OF_PRESETS: Final[Inner] = {
    "": PolicyText,
    "rule": RuleText,
    "select": SelectText,
    "headroom_percent": HeadroomText,
    "baseline": BaselineText,
}


def findings_of(error: ValidationError, inner: Inner = OF_PRESETS) -> Iterator[Finding]:
    """Yield what is wrong, with its place in the file."""
    every = error.errors(include_url=False)
    return (_finding(each, inner) for each in [*filter(_says_something, every)] or every)


def _says_something(details: ErrorDetails) -> bool:
    """Return whether a detail is news: wrong entries make a list too short, and one shape is not the other."""
    match details["type"]:
        case "too_short":
            return not details["input"]
        case "model_type":
            return "HeadroomText" not in details["loc"]
        case "int_type":
            return not (isinstance(details["input"], dict) and _ARMS[0] in details["loc"])
        case _:
            return True


def _finding(details: ErrorDetails, inner: Inner) -> Finding:
    keypath = tuple(part for part in details["loc"] if part not in _ARMS)
    shown = dotted(keypath)
    kind, ctx = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        hint = suggestion(str(keypath[-1]), _keys_beside(keypath, inner))
        return keypath, f"unknown key {shown!r}.{hint}".removesuffix(".")
    if kind == "missing":
        return keypath[:-1], f"missing key {shown!r}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        expected = f"a number of {words} {ctx[bound]}"
    elif kind == "literal_error":
        expected = str(ctx["expected"])
    elif kind == "string_pattern_mismatch":
        expected = 'an amount as text, like "0.05"'
    elif kind in ("too_short", "string_too_short"):
        expected = "at least one" if kind == "too_short" else "text that is not empty"
    else:
        expected = _EXPECTED.get(kind, details["msg"])
    return keypath, f"{shown}: expected {expected}, got {shown_value(details['input'], mapping='a table')}"


def _keys_beside(keypath: Keypath, inner: Inner) -> list[str]:
    part = inner[""]
    for name in keypath[:-1]:
        part = inner.get(str(name), part)
    return list(part.model_fields)
