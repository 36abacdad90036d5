"""A scenario's script: the scripted LLM's replies, their conditions and their reported usage."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, JsonValue, Tag, field_validator, model_validator

from statek_sim.scenario.part import (
    CallableName,
    Count,
    Items,
    Moment,
    Name,
    Part,
    Positive,
    Seconds,
    key,
    refused,
    shape,
)

KINDS: Final = ("code", "text", "tools", "python", "http", "timeout", "body", "call")
"""The kinds of replies. `tools` may be combined with `code` or `text`; other kinds exclude each other."""

ReplyKind = Literal["code", "text", "tools", "python", "http", "timeout", "body", "call"]

_ALONE: Final = ("tools", "python", "http", "timeout", "body", "call")


class TextMatch(Part):
    """A condition on text; all given keys must match."""

    contains: str = key("", "The text contains this string.")
    equals: str = key("", "The text is exactly this string.")
    matches: str = key("", "This regular expression matches the text (Python's `re.search`).")

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @field_validator("matches")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise refused(f"not a valid regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise refused("expected at least one of contains, equals, matches")
        return self


_DEMANDS: Final = ("last_message", "tool_result", "turn", "attempt", "at", "model", "headers")
_ONE_DEMAND: Final[list[JsonValue]] = [
    {"required": [key], "properties": {key: {"not": {"type": "null"}}}} for key in _DEMANDS
]


class When(Part):
    """A condition on the request; all given keys must match."""

    last_message: TextMatch | None = key(None, "Condition on the content of the last message.")
    tool_result: TextMatch | None = key(
        None, "Condition on the content of the last message with the role `tool`."
    )
    turn: Positive | None = key(None, "The job's LLM turn, starting from 1.")
    attempt: Positive | None = key(None, "The attempt on that turn, starting from 1; 2 is the first retry.")
    at: Moment | None = key(None, "The request is made at or after this virtual second.")
    model: TextMatch | None = key(None, "Condition on the model's name.")
    headers: dict[str, TextMatch] | None = key(
        None,
        "Conditions on HTTP headers, keyed by case-insensitive name; only requests to a fake server have headers.",
        min_length=1,
    )

    model_config = ConfigDict(json_schema_extra={"anyOf": _ONE_DEMAND})

    @model_validator(mode="after")
    def _demands_something(self) -> Self:
        if all(getattr(self, key) is None for key in _DEMANDS):
            raise refused(f"expected at least one of {', '.join(_DEMANDS)}")
        return self


class ToolCall(Part):
    """A tool call in a reply."""

    name: str = Field(description="The tool's name, which can be unknown.")
    args: dict[str, JsonValue] = key(dict, "Arguments, sent as a JSON object.")
    id: str | None = key(None, "The call's id; default: numbered per run.")


class UsageReport(Part):
    """The usage that the provider reports for a request (omitted counts are 0; null is sent as null)."""

    prompt: Count | None = key(None, "`prompt_tokens`.")
    completion: Count | None = key(None, "`completion_tokens`.")
    cached: Count | None = key(None, "`prompt_tokens_details.cached_tokens`, part of `prompt`.")
    cost: Annotated[float, Field(ge=0)] | None = key(None, "Reported cost of the request, in US dollars.")


class CitationText(Part):
    """A web page cited in a text reply."""

    url: str = Field(description="The page's address.")
    title: str = key("", "The page's title.")
    span: str = key("", "The part of the text that cites the page; empty: the whole text.")
    quote: str = key("", "The text cited from the page, for Anthropic; empty: the span.")


class TokenText(Part):
    """A token in a text reply, with its log probability."""

    token: str = Field(description="The token.")
    logprob: Annotated[float, Field(le=0)] = Field(description="Its log probability.")
    others: dict[str, Annotated[float, Field(le=0)]] = key(dict, "Log probabilities of alternative tokens.")


Usage = Annotated[
    Annotated[Literal["measured"], Tag("<text>")]
    | Annotated[UsageReport, Tag("<mapping>")]
    | Annotated[None, Tag("<null>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected 'measured', null or a mapping of prompt, completion, cached, cost",
    ),
]

Repeat = Annotated[
    Annotated[Positive, Tag("<number>")] | Annotated[Literal["forever"], Tag("<text>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected a whole number from 1, or 'forever'",
    ),
]

Body = Annotated[
    Annotated[str, Tag("<text>")]
    | Annotated[dict[str, JsonValue], Tag("<mapping>")]
    | Annotated[list[JsonValue], Tag("<list>")],
    Discriminator(
        shape,
        custom_error_type="refused",
        custom_error_message="expected the body as a string, or a mapping or list to send as JSON",
    ),
]

_REQUIRE_ALONE: Final[list[JsonValue]] = [{"required": [kind]} for kind in _ALONE]
_REPLY_RULES: Final[dict[str, JsonValue]] = {
    "oneOf": [
        {"required": ["code"], "not": {"required": ["tools"]}},
        {"required": ["text"], "not": {"required": ["tools"]}},
        *_REQUIRE_ALONE,
    ],
    "not": {"required": ["code", "text"]},
    "dependentSchemas": {
        "retry_after": {"required": ["http"]},
        "malformed_arguments": {"anyOf": [{"required": ["tools"]}, {"required": ["python"]}]},
    },
}


class Reply(Part):
    """A scripted reply, with exactly one of code, text, tools, python, http, timeout, body, call."""

    model_config = ConfigDict(json_schema_extra=_REPLY_RULES)

    code: str = key("", "Python code, fenced as the job's chat style requires. Can be combined with `tools`.")
    text: str | None = key("", "The exact content (null: no content). Can be combined with `tools`.")
    tools: Items[ToolCall] = key((), "Tool calls, in this order.", min_length=1)
    python: str = key("", "Shorthand for one `python_cli` tool call with this code.")
    http: Annotated[int, Field(ge=400, le=599)] = key(500, "Fault: this HTTP status instead of a reply.")
    timeout: Literal[True] = key(True, "Fault: the provider doesn't answer in time.")
    body: Body = key("", "The raw HTTP body; a mapping or list is sent as JSON.")
    call: CallableName = key("", "A Python callable, `module:attribute`, that answers the request.")

    latency: Seconds = key(0.0, "Virtual seconds until the reply arrives.")
    usage: Usage = key(None, "Reported usage; default: none (the body has no `usage` key).")
    when: When | None = key(None, "Use this reply only for requests that meet this condition.")
    repeat: Repeat = key(1, "How often the reply is used; 'forever': any number of times.")
    truncated: bool = key(False, "Whether the reply is cut off (finish_reason `length`).")
    retry_after: Seconds | None = key(None, "`Retry-After` header of an HTTP fault, in seconds.")
    malformed_arguments: str = key("", "Send this text as the arguments of the last tool call.")
    mistaken: bool = key(
        False,
        "Whether the calls are wrong on purpose; a served script then doesn't compare them with the offered tools.",
    )
    job: Name | None = key(None, "The only job that can use the reply.")
    thinking: str = key("", "The model's thinking before its answer.")
    refuses: bool = key(False, "Whether the text is a refusal.")
    citations: Items[CitationText] = key((), "Pages cited in the text.")
    logprobs: Items[TokenText] = key((), "The text's tokens, with their log probabilities.")

    @property
    def kind(self) -> ReplyKind:
        """The kind of reply; a reply with `tools` may have `code` or `text` as its content."""
        for kind in _ALONE:
            if kind in self.model_fields_set:
                return kind
        return "code" if "code" in self.model_fields_set else "text"

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [kind for kind in KINDS if kind in self.model_fields_set]
        if not given:
            raise refused(f"expected exactly one of {', '.join(KINDS)}")
        if len(given) > 1 and not (len(given) == 2 and "tools" in given and given[0] in ("code", "text")):
            raise refused(
                f"{' and '.join(given)} exclude each other; only tools may be combined with code or text"
            )
        if self.said("retry_after") and "http" not in given:
            raise refused("retry_after requires http")
        for name in ("thinking", "refuses", "citations", "logprobs"):
            if self.said(name) and given[0] in ("python", "http", "timeout", "body", "call"):
                raise refused(f"{name} requires text, code or tools")
        if self.said("malformed_arguments") and given[-1] not in ("tools", "python"):
            raise refused("malformed_arguments requires tools or python")
        return self
