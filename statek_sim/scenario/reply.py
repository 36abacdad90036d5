"""The script of a scenario: the scripted LLM's replies, their conditions, and their reported usage."""

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
    refused,
    shape,
)

KINDS: Final = ("code", "text", "tools", "python", "http", "timeout", "body", "call")
"""The kinds of replies; `tools` may be combined with `code` or `text`, the others may not be combined."""

ReplyKind = Literal["code", "text", "tools", "python", "http", "timeout", "body", "call"]

_ALONE: Final = ("tools", "python", "http", "timeout", "body", "call")


class TextMatch(Part):
    """A condition on a text; all given parts must hold."""

    contains: str = Field(default="", description="The text contains this.")
    equals: str = Field(default="", description="The text is exactly this.")
    matches: str = Field(
        default="", description="This regular expression (Python's `re.search`) finds something."
    )

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @field_validator("matches")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise refused(f"not a regular expression: {error}") from None
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
    """A condition on the request; all given parts must hold."""

    last_message: TextMatch | None = Field(
        default=None, description="Condition on the content of the last message."
    )
    tool_result: TextMatch | None = Field(
        default=None, description="Condition on the content of the last message with role `tool`."
    )
    turn: Positive | None = Field(default=None, description="The job's LLM turn, from 1.")
    attempt: Positive | None = Field(
        default=None, description="The attempt at that turn, from 1; 2 is the first retry."
    )
    at: Moment | None = Field(
        default=None, description="The request is made at or after this virtual second."
    )
    model: TextMatch | None = Field(default=None, description="Condition on the name of the model.")
    headers: dict[str, TextMatch] | None = Field(
        default=None,
        min_length=1,
        description="Conditions on HTTP headers, by name in any case; only a request to a fake server has any.",
    )

    model_config = ConfigDict(json_schema_extra={"anyOf": _ONE_DEMAND})

    @model_validator(mode="after")
    def _demands_something(self) -> Self:
        if all(getattr(self, key) is None for key in _DEMANDS):
            raise refused(f"expected at least one of {', '.join(_DEMANDS)}")
        return self


class ToolCall(Part):
    """One tool call in a reply."""

    name: str = Field(description="Name of the tool, known or not.")
    args: dict[str, JsonValue] = Field(default_factory=dict, description="Arguments, sent as a JSON object.")
    id: str | None = Field(
        default=None, description="The provider's id of the call; default: numbered per run."
    )


class UsageReport(Part):
    """The provider's report about one call: omitted counts are 0, null is sent as null."""

    prompt: Count | None = Field(default=None, description="`prompt_tokens`.")
    completion: Count | None = Field(default=None, description="`completion_tokens`.")
    cached: Count | None = Field(
        default=None, description="`prompt_tokens_details.cached_tokens`, part of `prompt`."
    )
    cost: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Reported cost of the call, in USD."
    )


class CitationText(Part):
    """A web page that a text cites."""

    url: str = Field(description="Address of the page.")
    title: str = Field(default="", description="Its title.")
    span: str = Field(default="", description="The part of the text that cites it; empty: all of it.")
    quote: str = Field(default="", description="The cited text of the page, for Anthropic; empty: the span.")


class TokenText(Part):
    """A token of a text, with its log probability."""

    token: str = Field(description="The token.")
    logprob: Annotated[float, Field(le=0)] = Field(description="Its log probability.")
    others: dict[str, Annotated[float, Field(le=0)]] = Field(
        default_factory=dict, description="Log probabilities of other tokens in its place."
    )


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
        custom_error_message="expected the body as text, or a mapping or list to send as JSON",
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
    """One scripted reply: exactly one of code, text, tools, python, http, timeout, body, call."""

    model_config = ConfigDict(json_schema_extra=_REPLY_RULES)

    code: str = Field(
        default="", description="Python; fenced as the job's chat style requires. May come with `tools`."
    )
    text: str | None = Field(
        default="", description="Exactly this content (null: no content). May come with `tools`."
    )
    tools: Items[ToolCall] = Field(default=(), min_length=1, description="Tool calls, in this order.")
    python: str = Field(default="", description="Short for one `python_cli` tool call with this code.")
    http: Annotated[int, Field(ge=400, le=599)] = Field(
        default=500, description="Fault: this HTTP status, no reply."
    )
    timeout: Literal[True] = Field(default=True, description="Fault: the provider does not answer in time.")
    body: Body = Field(default="", description="The raw HTTP body; a mapping or list is sent as JSON.")
    call: CallableName = Field(
        default="", description="Python callable `module:attribute` that answers the request."
    )

    latency: Seconds = Field(default=0.0, description="Virtual seconds until the reply arrives.")
    usage: Usage = Field(default=None, description="Reported usage; default: the body has no `usage` key.")
    when: When | None = Field(default=None, description="Use this reply only for such a request.")
    repeat: Repeat = Field(
        default=1, description="How often the reply is used; 'forever': any number of times."
    )
    truncated: bool = Field(default=False, description="The reply is cut off: finish_reason is `length`.")
    retry_after: Seconds | None = Field(
        default=None, description="`Retry-After` header of an HTTP fault, in seconds."
    )
    malformed_arguments: str = Field(
        default="", description="Send this text as the arguments of the last tool call."
    )
    mistaken: bool = Field(
        default=False,
        description="The calls are wrong on purpose: a served script does not compare them with the offered tools.",
    )
    job: Name | None = Field(default=None, description="Only this job may use the reply.")
    thinking: str = Field(default="", description="The model's thinking before its answer.")
    refuses: bool = Field(default=False, description="The text says why the model refuses to answer.")
    citations: Items[CitationText] = Field(default=(), description="Pages that the text cites.")
    logprobs: Items[TokenText] = Field(
        default=(), description="Log probabilities of the tokens that the text consists of."
    )

    @property
    def kind(self) -> ReplyKind:
        """Return the kind of the reply; with `tools`, `code` or `text` is its content."""
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
                f"{' and '.join(given)} contradict each other; only tools may come with code or text"
            )
        if self.said("retry_after") and "http" not in given:
            raise refused("retry_after needs http")
        for key in ("thinking", "refuses", "citations", "logprobs"):
            if self.said(key) and given[0] in ("python", "http", "timeout", "body", "call"):
                raise refused(f"{key} needs text, code or tools")
        if self.said("malformed_arguments") and given[-1] not in ("tools", "python"):
            raise refused("malformed_arguments needs tools or python")
        return self
