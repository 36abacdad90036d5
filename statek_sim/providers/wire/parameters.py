"""Which parameters of a request a fake accepts: none that would change a provider's answer is passed over in silence.

A parameter is honoured by `read_request`; or it is free, because it only shapes what a model would choose (here the
script chooses) or changes nothing that a client sees; or a request that uses it is refused. What no table names is
refused too, as the providers do, and so is a value that they would not take: a temperature that is a text, or 9.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from statek_sim.values import JSON

Off = Callable[[JSON], bool]
"""Tells of a value whether it asks for nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What values a parameter may have: `words` come after "expected", `fits` tells. Null says nothing and is fine."""

    words: str
    fits: Callable[[JSON], bool]


def _number(low: float, high: float) -> Kind:
    """Numbers in a range, both ends in it; true and false are none."""

    def fits(value: JSON) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high

    return Kind(f"a number from {low:g} " + (f"to {high:g}" if high < math.inf else "on"), fits)


def _whole(low: int | None = None) -> Kind:
    """Whole numbers, from `low` on where there is one; 3.0 is one."""

    def fits(value: JSON) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
            return False
        return low is None or value >= low

    return Kind("a whole number" if low is None else f"a whole number from {low} on", fits)


def _word(*words: str, objects: bool = False) -> Kind:
    """One of some words, or an object with a type where that is one of the ways to say it."""
    listed = ", ".join(map(repr, words)) + (" or an object with a type" if objects else "")

    def fits(value: JSON) -> bool:
        return value in words or (objects and isinstance(value, dict) and isinstance(value.get("type"), str))

    return Kind(f"one of {listed}", fits)


def _members(*names: str) -> Kind:
    """An object that has no others than these; the API takes their names with underscores too."""
    known = {name.lower() for name in names}
    return Kind(
        f"an object of {', '.join(names)}",
        lambda value: isinstance(value, dict) and {key.replace("_", "").lower() for key in value} <= known,
    )


def _typed(*types: str) -> Kind:
    """An object whose `type` is one of some."""
    listed = ", ".join(map(repr, types))
    return Kind(
        f"an object whose type is one of {listed}",
        lambda value: isinstance(value, dict) and value.get("type") in types,
    )


_LONGEST_SHOWN: Final = 80
"""Characters of a wrong value that are shown."""

_FLAG: Final = Kind("true or false", lambda value: isinstance(value, bool))
_TEXT: Final = Kind("a string", lambda value: isinstance(value, str))
_OBJECT: Final = Kind("an object", lambda value: isinstance(value, dict))
_LIST: Final = Kind("a list", lambda value: isinstance(value, list))
_TEXTS: Final = Kind(
    "a list of strings",
    lambda value: isinstance(value, list) and all(isinstance(text, str) for text in value),
)
_STOPS: Final = Kind(
    "a string or up to 4 of them in a list", lambda value: not isinstance(value, list) or len(value) <= 4
)


class Refusal(NamedTuple):
    """A status 400: the parameter that is wrong as the provider writes it, why, and OpenAI's code of the error."""

    parameter: str
    why: str
    code: str = "invalid_value"


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one API. `limited`: those that may be said as long as their value asks for nothing.

    `kinds`: what values the providers take, where reading a request does not find out.
    """

    accepted: frozenset[str]
    limited: Mapping[str, Off]
    kinds: Mapping[str, Kind]

    def refusals(self, body: Mapping[str, JSON], *, within: str = "") -> tuple[Refusal, ...]:
        """Return what of `body` cannot be honoured, then what has a wrong value; `within` goes before the names."""
        given = [(name, value) for name, value in body.items() if value is not None]
        unsupported = [
            _unsupported(f"{within}{name}")
            for name, value in given
            if name not in self.accepted and not (name in self.limited and self.limited[name](value))
        ]
        wrong = [
            Refusal(f"{within}{name}", f"{within}{name}: expected {kind.words}, got {_shown(value)}")
            for name, value in given
            if (kind := self.kinds.get(name)) is not None and not kind.fits(value)
        ]
        return (*unsupported, *wrong)


def parameters(accepted: str, kinds: Mapping[str, Kind] | None = None, **limited: Off) -> Parameters:
    """Return the parameters of an API; `accepted` are names with spaces between."""
    return Parameters(frozenset(accepted.split()), limited, kinds or {})


def _unsupported(name: str) -> Refusal:
    why = (
        f"Unsupported parameter `{name}`: remove it, or accept and ignore it "
        f"(script([...], ignored=[{name!r}]), or serve --ignore {name})"
    )
    return Refusal(name, why, "unsupported_parameter")


def _shown(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def empty(value: JSON) -> bool:
    """Tell whether a value is 0, false, or has nothing in it."""
    return not value


def one(value: JSON) -> bool:
    """Tell whether a number of answers is 1."""
    return value == 1


def text_only(value: JSON) -> bool:
    """Tell whether a list of kinds of output names text alone."""
    return isinstance(value, list) and {str(kind).lower() for kind in value} <= {"text"}


def _no_logprobs(value: JSON) -> bool:
    return isinstance(value, list) and not any("logprobs" in str(included) for included in value)


def _automatic_pages(value: JSON) -> bool:
    return value in ("auto", "disabled")


# https://platform.openai.com/docs/api-reference/chat/create
OPENAI: Final = parameters(
    # honoured
    "model messages tools tool_choice parallel_tool_calls max_tokens max_completion_tokens stop response_format "
    "stream stream_options "
    # what a model would choose
    "temperature top_p frequency_penalty presence_penalty logit_bias seed reasoning_effort verbosity prediction "
    # no client sees
    "user metadata store service_tier safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options "
    # what other providers of this format call such things
    "top_k min_p repetition_penalty reasoning provider route models transforms thinking",
    {
        "temperature": _number(0, 2),
        "top_p": _number(0, 1),
        "frequency_penalty": _number(-2, 2),
        "presence_penalty": _number(-2, 2),
        "seed": _whole(),
        "logit_bias": _OBJECT,
        "metadata": _OBJECT,
        "stop": _STOPS,
        "stream": _FLAG,
        "stream_options": _OBJECT,
        "store": _FLAG,
        "parallel_tool_calls": _FLAG,
        "tools": _LIST,
        "tool_choice": _word("none", "auto", "required", objects=True),
        "response_format": _typed("text", "json_object", "json_schema"),
        "reasoning_effort": _TEXT,
        "verbosity": _TEXT,
        "user": _TEXT,
    },
    n=one,
    logprobs=empty,
    top_logprobs=empty,
    modalities=text_only,
    functions=empty,
)

# https://platform.openai.com/docs/api-reference/responses/create
RESPONSES: Final = parameters(
    "model input instructions tools tool_choice parallel_tool_calls max_output_tokens text stream stream_options "
    "previous_response_id store "
    "temperature top_p reasoning max_tool_calls context_management "
    "user metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options",
    {
        "temperature": _number(0, 2),
        "top_p": _number(0, 1),
        "context_management": _LIST,
        "include": _TEXTS,
        "instructions": _TEXT,
        "max_tool_calls": _whole(1),
        "metadata": _OBJECT,
        "parallel_tool_calls": _FLAG,
        "reasoning": _OBJECT,
        "store": _FLAG,
        "stream": _FLAG,
        "stream_options": _OBJECT,
        "text": _OBJECT,
        "tools": _LIST,
        "tool_choice": _word("none", "auto", "required", objects=True),
        "user": _TEXT,
    },
    background=empty,
    include=_no_logprobs,
    top_logprobs=empty,
    truncation=_automatic_pages,
)

_THINKING: Final = _typed("enabled", "disabled", "adaptive")

# https://platform.claude.com/docs/en/api/messages, and the beta's parameters in `anthropic` 2
ANTHROPIC: Final = parameters(
    "model messages system max_tokens tools tool_choice stop_sequences output_config output_format stream "
    "temperature top_p top_k thinking speed "
    "metadata service_tier inference_geo cache_control user_profile_id workspace_id betas "
    # betas that Claude Code sends, as `BetaMessage`'s request in anthropic 2.14 has them: the script is the model
    "context_management diagnostics fallbacks billing_policy",
    {
        "context_management": _OBJECT,
        "diagnostics": _OBJECT,
        "temperature": _number(0, 1),
        "top_p": _number(0, 1),
        "top_k": _whole(0),
        "max_tokens": _whole(1),
        "metadata": _OBJECT,
        "output_config": _OBJECT,
        "stop_sequences": _LIST,
        "stream": _FLAG,
        "thinking": _THINKING,
        "tools": _LIST,
        "tool_choice": _typed("auto", "any", "tool", "none"),
    },
    mcp_servers=empty,
)

ANTHROPIC_COUNT: Final = parameters(
    "model messages system tools tool_choice thinking output_config output_format cache_control speed "
    "user_profile_id workspace_id betas context_management billing_policy",
    {
        "context_management": _OBJECT,
        "thinking": _THINKING,
        "tools": _LIST,
        "tool_choice": _typed("auto", "any", "tool", "none"),
    },
    mcp_servers=empty,
)

# https://ai.google.dev/api/generate-content
GEMINI: Final = parameters(
    "contents systemInstruction tools toolConfig generationConfig safetySettings labels serviceTier model store",
    {
        "labels": _OBJECT,
        "model": _TEXT,
        "safetySettings": _LIST,
        "toolConfig": _members(
            "functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations"
        ),
    },
)

GEMINI_CONFIG: Final = parameters(
    "stopSequences maxOutputTokens responseMimeType responseSchema responseJsonSchema "
    "temperature topP topK seed presencePenalty frequencyPenalty thinkingConfig mediaResolution "
    "routingConfig modelSelectionConfig enableEnhancedCivicAnswers",
    {
        "temperature": _number(0, 2),
        "topP": _number(0, 1),
        "topK": _number(1, math.inf),
        "seed": _whole(),
        "presencePenalty": _number(-2, 2),
        "frequencyPenalty": _number(-2, 2),
        "responseMimeType": _word(
            "text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum"
        ),
        "responseSchema": _OBJECT,
        "stopSequences": _LIST,
        "thinkingConfig": _OBJECT,
    },
    candidateCount=one,
    responseModalities=text_only,
    responseLogprobs=empty,
    logprobs=empty,
)

EMBEDDINGS: Final = parameters(
    "model input dimensions encoding_format user",
    {"encoding_format": _word("float", "base64"), "user": _TEXT},
)

GEMINI_EMBEDDING: Final = parameters(
    "model content taskType title outputDimensionality autoTruncate embedContentConfig",
    {
        "autoTruncate": _FLAG,
        "model": _TEXT,
        "title": _TEXT,
        "content": _OBJECT,
        "embedContentConfig": _OBJECT,
    },
)

GEMINI_BATCH: Final = parameters("model requests", {"model": _TEXT})
