"""Types that every layer shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]
"""Anything `json.dumps` takes."""

Message = Mapping[str, JSON]
"""One chat message in the OpenAI wire shape: `role`, `content`, and maybe `tool_calls` or `tool_call_id`."""

ToolSpec = Mapping[str, JSON]
"""One entry of a request's `tools` list in the OpenAI wire shape."""


def in_common(before: Sequence[object], now: Sequence[object]) -> int:
    """Return how many messages two requests have in common, counted from the first."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(before), len(now)))
