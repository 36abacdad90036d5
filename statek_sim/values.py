"""Types that every layer shares."""

from __future__ import annotations

from collections.abc import Mapping

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]
"""Anything `json.dumps` takes."""

Message = Mapping[str, JSON]
"""One chat message in the OpenAI wire shape: `role`, `content`, and maybe `tool_calls` or `tool_call_id`."""

ToolSpec = Mapping[str, JSON]
"""One entry of a request's `tools` list in the OpenAI wire shape."""
