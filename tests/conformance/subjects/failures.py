"""When the provider fails, or says what nobody can read (behaviour 5, 8, 12)."""

from __future__ import annotations

import json
from typing import Final

from tests.conformance.job import END, Call, ConformanceJob, Refusal, Reply, Say, Turn, console, dialog


def body(name: str, about: str, text: str) -> ConformanceJob:
    """Return a job whose first answer has this body; then the user writes again."""
    turns: tuple[Turn, ...] = (Reply(body=text), "recovered", "and again")
    return dialog(name, about, *turns, happens=(Say("still there?"),))


def usage(value: object) -> str:
    """Return a body with this usage report."""
    return json.dumps({"choices": [{"message": {"content": "hi"}}], "usage": value})


def message(value: object) -> str:
    """Return a body with this message."""
    return json.dumps({"choices": [{"message": value}]})


JOBS: Final[tuple[ConformanceJob, ...]] = (
    console("bad_request", "HTTP 400 ends the job at once", "print(1)", Refusal(400)),
    console("unauthorized", "HTTP 401 ends the job at once", Refusal(401)),
    console(
        "overloaded_once",
        "HTTP 429 is tried again",
        Refusal(429),
        "print(1)",
        Refusal(503),
        Refusal(408),
        END,
    ),
    console("overloaded", "after three attempts the job ends", Refusal(500), Refusal(502), Refusal(503)),
    console("timeout_once", "a timeout is tried again", Refusal(None), END),
    console(
        "timeouts",
        "three timeouts end the job; their error has no text",
        Refusal(None),
        Refusal(None),
        Refusal(None),
    ),
    dialog(
        "crashed_and_revived",
        "a message to a job that crashed",
        Refusal(400),
        "here I am",
        "and again",
        happens=(Say("hello?"), Say("more")),
    ),
    body("no_json", "a body that is no JSON", "Service unavailable"),
    body("empty_body", "an empty body", ""),
    body("no_choices", "a body without choices", json.dumps({"error": {"message": "quota exceeded"}})),
    body("empty_choices", "an empty list of choices", json.dumps({"choices": []})),
    body("no_message", "a choice without a message", json.dumps({"choices": [{}]})),
    body("null_usage", "usage is null", usage(None)),
    body("null_tokens", "a token count is null", usage({"prompt_tokens": None, "completion_tokens": 1})),
    body("no_usage", "no usage at all", message({"content": "hi"})),
    body("number_as_content", "content that is a number", message({"content": 5})),
    body(
        "list_as_content",
        "content that is a list of parts",
        message({"content": [{"type": "text", "text": "hi"}]}),
    ),
    body(
        "call_without_function",
        "a tool call without a function",
        message({"content": "", "tool_calls": [{"id": "1"}]}),
    ),
    body(
        "call_of_other_type",
        "a tool call of an unknown type",
        message({"content": "", "tool_calls": [{"id": "1", "type": "custom"}]}),
    ),
    body(
        "call_without_id",
        "a tool call without an id",
        message(
            {"content": "x", "tool_calls": [{"function": {"name": "note", "arguments": '{"text": "a"}'}}]}
        ),
    ),
    body(
        "anthropic_call",
        "a tool call in the other vendor's shape",
        message(
            {
                "content": None,
                "tool_calls": [{"type": "tool_use", "id": "1", "name": "note", "input": {"text": "a"}}],
            }
        ),
    ),
    dialog(
        "bad_arguments", "arguments that are no JSON end the job", Reply(calls=(Call("note", "{'text': 1}"),))
    ),
    dialog("list_arguments", "arguments that are no object end the job", Reply(calls=(Call("note", "[1]"),))),
    dialog("empty_arguments", "empty arguments end the job", Reply(calls=(Call("note", ""),))),
)
