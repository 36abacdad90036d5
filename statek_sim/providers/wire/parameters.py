"""Which parameters of a request a fake heeds: none that would change a provider's answer is passed over in silence.

A parameter is honoured by `read_request`; or it is free, because it only shapes what a model would choose (here the
script chooses) or changes nothing that a client sees; or a request that uses it is refused. What no table names is
refused too, as the providers do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from statek_sim.values import JSON

Off = Callable[[JSON], bool]
"""Tells of a value whether it asks for nothing."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one API. `limited`: those that may be said as long as their value asks for nothing."""

    heeded: frozenset[str]
    limited: Mapping[str, Off]

    def unheeded(self, body: Mapping[str, JSON], *, within: str = "") -> tuple[str, ...]:
        """Return the parameters of `body` that cannot be honoured, in its order; `within` goes before their names."""
        if self.heeded.issuperset(body):
            return ()
        return tuple(
            f"{within}{name}"
            for name, value in body.items()
            if name not in self.heeded and value is not None and not self.limited.get(name, _never)(value)
        )


def parameters(heeded: str, **limited: Off) -> Parameters:
    """Return the parameters of an API; `heeded` are names with spaces between."""
    return Parameters(frozenset(heeded.split()), limited)


def _never(value: JSON) -> bool:
    return False


def empty(value: JSON) -> bool:
    """Tell whether a value is 0, false, or has nothing in it."""
    return not value


def text_only(value: JSON) -> bool:
    """Tell whether a list of kinds of output names text alone."""
    return isinstance(value, list) and {str(kind).lower() for kind in value} <= {"text"}


def _no_logprobs(value: JSON) -> bool:
    return isinstance(value, list) and not any("logprobs" in str(included) for included in value)


def _automatic_pages(value: JSON) -> bool:
    return value in ("auto", "disabled")


OPENAI: Final = parameters(
    # honoured
    "model messages tools tool_choice parallel_tool_calls max_tokens max_completion_tokens n stop response_format "
    "stream stream_options "
    # what a model would choose
    "temperature top_p frequency_penalty presence_penalty logit_bias seed reasoning_effort verbosity prediction "
    # no client sees
    "user metadata store service_tier safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options "
    # what other providers of this format call such things
    "top_k min_p repetition_penalty reasoning provider route models transforms thinking",
    logprobs=empty,
    top_logprobs=empty,
    modalities=text_only,
    functions=empty,
)

RESPONSES: Final = parameters(
    "model input instructions tools tool_choice parallel_tool_calls max_output_tokens text stream stream_options "
    "previous_response_id store "
    "temperature top_p reasoning max_tool_calls "
    "user metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options",
    background=empty,
    include=_no_logprobs,
    top_logprobs=empty,
    truncation=_automatic_pages,
)

ANTHROPIC: Final = parameters(
    "model messages system max_tokens tools tool_choice stop_sequences output_config output_format stream "
    "temperature top_p top_k thinking speed "
    "metadata service_tier inference_geo cache_control user_profile_id workspace_id betas",
    mcp_servers=empty,
)

ANTHROPIC_COUNT: Final = parameters(
    "model messages system tools tool_choice thinking output_config output_format cache_control speed "
    "user_profile_id workspace_id betas",
    mcp_servers=empty,
)

GEMINI: Final = parameters(
    "contents systemInstruction tools toolConfig generationConfig safetySettings labels serviceTier model store"
)

GEMINI_CONFIG: Final = parameters(
    "candidateCount stopSequences maxOutputTokens responseMimeType responseSchema responseJsonSchema "
    "temperature topP topK seed presencePenalty frequencyPenalty thinkingConfig mediaResolution "
    "routingConfig modelSelectionConfig enableEnhancedCivicAnswers",
    responseModalities=text_only,
    responseLogprobs=empty,
    logprobs=empty,
)

EMBEDDINGS: Final = parameters("model input dimensions encoding_format user")

GEMINI_EMBEDDING: Final = parameters("model content taskType title outputDimensionality autoTruncate")
