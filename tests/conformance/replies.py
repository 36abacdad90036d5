"""Reply bodies of all formats, most of them odd, and what the real package makes of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

Read = dict[str, Any]
"""What was read of a body: text, calls and usage, or the type and the text of the error."""

_DIRECTORY: Final = Path(__file__).resolve().parent / "recorded_replies"

_ANYTHING: Final = (
    "",
    "<html>",
    "{",
    "null",
    "[]",
    '"text"',
    "7",
    "{}",
    '{"error": {"message": "boom"}}',
    '{"error": {"code": 7}}',
    '{"error": "boom"}',
    '{"error": null}',
)
_OPENAI: Final = (
    '{"choices": []}',
    '{"choices": null}',
    '{"choices": [null]}',
    '{"choices": [{}]}',
    '{"choices": [{"message": null}]}',
    '{"choices": [{"message": {"content": null}}]}',
    '{"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]}',
    '{"choices": [{"message": {"content": "a", "reasoning": "r"}}]}',
    '{"choices": [{"message": {"tool_calls": [{"function": {"name": "t", "arguments": "{"}}]}}]}',
    '{"choices": [{"message": {"tool_calls": [{"function": {"name": "t", "arguments": "[]"}}]}}]}',
    '{"choices": [{"message": {"tool_calls": [{"id": 5, "function": {"name": "t"}}]}}]}',
    '{"choices": [{"message": {"tool_calls": {}}}]}',
    '{"choices": [{"message": {"content": "a"}}], "usage": null}',
    '{"choices": [{"message": {"content": "a"}}], "usage": {}}',
    '{"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": 3, "prompt_tokens_details": null}}',
    '{"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": null}}',
)
_ANTHROPIC: Final = (
    '{"content": null}',
    '{"content": []}',
    '{"content": "text"}',
    '{"content": [null]}',
    '{"content": [{}]}',
    '{"content": [{"type": "text"}]}',
    '{"content": [{"type": "text", "text": null}]}',
    '{"content": [{"type": "text", "text": 5}]}',
    '{"content": [{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]}',
    '{"content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "b"}]}',
    '{"content": [{"type": "redacted_thinking", "data": "d"}]}',
    '{"content": [{"type": "tool_use", "id": "1", "name": "t", "input": {"a": 1}}]}',
    '{"content": [{"type": "tool_use"}]}',
    '{"content": [{"type": "tool_use", "name": 5}]}',
    '{"content": [{"type": "tool_use", "name": "t", "input": null}]}',
    '{"content": [{"type": "tool_use", "name": "t", "input": "{}"}]}',
    '{"content": [{"type": "tool_use", "name": "t"}]}',
    '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
    '{"content": [], "usage": null}',
    '{"content": [], "usage": []}',
    '{"content": [], "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 1000}}',
    '{"content": [], "usage": {"input_tokens": null}}',
    '{"content": [], "usage": {"cost": 0.25, "cache_creation_input_tokens": 7}}',
)
_GEMINI: Final = (
    '{"candidates": []}',
    '{"candidates": null}',
    '{"candidates": {}}',
    '{"candidates": [null]}',
    '{"candidates": [{}]}',
    '{"candidates": [{"finishReason": "SAFETY"}]}',
    '{"candidates": [{"content": null}]}',
    '{"candidates": [{"content": {"parts": null}}]}',
    '{"candidates": [{"content": {"parts": [null]}}]}',
    '{"candidates": [{"content": {"parts": [{}]}}]}',
    '{"candidates": [{"content": {"parts": [{"text": null}]}}]}',
    '{"candidates": [{"content": {"parts": [{"text": "a"}, {"inlineData": {}}, {"text": "b"}]}}]}',
    '{"candidates": [{"content": {"parts": [{"text": "a", "thought": true}, {"text": "b"}]}}]}',
    '{"candidates": [{"content": {"parts": [{"text": "a", "thoughtSignature": "s"}]}}]}',
    '{"candidates": [{"content": {"parts": [{"functionCall": null}]}}]}',
    '{"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]}',
    '{"candidates": [{"content": {"parts": [{"functionCall": {"name": "t"}}]}}]}',
    '{"candidates": [{"content": {"parts": [{"functionCall": {"id": "1", "name": "t", "args": {"a": 1}}}]}}]}',
    '{"candidates": [{"content": {"parts": [{"functionCall": {"name": "t", "args": "x"}}]}}]}',
    '{"candidates": [{"content": {"parts": []}}], "usageMetadata": null}',
    '{"candidates": [{"content": {"parts": []}}], "usageMetadata": {"promptTokenCount": 3, "thoughtsTokenCount": 9}}',
    '{"candidates": [{"content": {"parts": []}}], "usageMetadata": {"candidatesTokenCount": null}}',
)

BODIES: Final = {
    "openai": (*_ANYTHING, *_OPENAI),
    "anthropic": (*_ANYTHING, *_ANTHROPIC),
    "gemini": (*_ANYTHING, *_GEMINI),
}
"""Bodies by format."""


@cache
def recorded(version: str) -> dict[str, dict[str, Read]]:
    """Return what the real package of `version` reads, by format and body."""
    read: dict[str, dict[str, Read]] = json.loads(path_of(version).read_text(encoding="utf-8"))
    return read


def path_of(version: str) -> Path:
    """Return where the record of a release is."""
    return _DIRECTORY / f"{version}.json"
