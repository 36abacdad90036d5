"""What OpenTelemetry's conventions want of spans of agents, requests and tool calls; other spans are left alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

from statek_sim.spans import names

Level = Literal["required", "conditional", "recommended"]
"""How much the conventions want an attribute; what is conditional is so on its being known, or on a failure."""

REQUIREMENTS: Final[Mapping[names.Operation, Mapping[str, Level]]] = MappingProxyType(
    {
        names.Operation.AGENT: {
            names.OPERATION: "required",
            names.PROVIDER: "required",
            names.AGENT: "conditional",
            names.CONVERSATION: "conditional",
            names.MODEL: "conditional",
            names.ERROR: "conditional",
        },
        names.Operation.CHAT: {
            names.OPERATION: "required",
            names.PROVIDER: "required",
            names.CONVERSATION: "conditional",
            names.MODEL: "conditional",
            names.ERROR: "conditional",
            names.INPUT_TOKENS: "recommended",
            names.OUTPUT_TOKENS: "recommended",
        },
        names.Operation.TOOL: {
            names.OPERATION: "required",
            names.ERROR: "conditional",
            names.TOOL: "recommended",
            names.TOOL_CALL: "recommended",
            names.TOOL_TYPE: "recommended",
        },
    }
)
"""What `VERSION` wants of spans, as far as a trace can know it: what it requires is always there."""

_WHAT: Final = {
    names.Operation.AGENT: names.AGENT,
    names.Operation.CHAT: names.MODEL,
    names.Operation.TOOL: names.TOOL,
}
"""What the name of a span has behind its operation."""


class SpanLike(Protocol):
    """A span, of this package or of OpenTelemetry's SDK."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def attributes(self) -> Mapping[str, Any] | None:
        """Its attributes."""


def span_findings(spans: Iterable[SpanLike]) -> list[str]:
    """Return everything that is wrong, a line each."""
    return [
        f"span {span.name!r}: {problem}"
        for span in spans
        if _operation(span) is not None
        for problem in _problems(span)
    ]


def _operation(span: SpanLike) -> names.Operation | None:
    """Return a span's operation: what it says, or what its name begins with."""
    named = (span.attributes or {}).get(names.OPERATION) or span.name.partition(" ")[0]
    return next((one for one in names.GEN_AI if one.value == named), None)


def _problems(span: SpanLike) -> Iterator[str]:
    operation, attributes = _operation(span), span.attributes or {}
    assert operation is not None, "spans of other operations are left out"
    for name, level in REQUIREMENTS[operation].items():
        if level == "required" and not attributes.get(name):
            yield f"{name} is missing, which version {names.VERSION} requires"
    what = attributes.get(_WHAT[operation])
    wanted = f"{operation} {what}" if what else str(operation)
    if span.name != wanted:
        yield f"its name is not {wanted!r}"
    for name in (names.INPUT_TOKENS, names.OUTPUT_TOKENS):
        count = attributes.get(name, 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            yield f"{name} is {count!r}, expected a whole number from 0 on"
    if names.TOOL_ARGUMENTS in attributes and not _is_object(attributes[names.TOOL_ARGUMENTS]):
        yield f"{names.TOOL_ARGUMENTS} is not a JSON object: {attributes[names.TOOL_ARGUMENTS]!r:.80}"


def _is_object(arguments: object) -> bool:
    if isinstance(arguments, Mapping):
        return True
    try:
        return isinstance(json.loads(str(arguments)), dict)
    except (ValueError, RecursionError):
        return False
