"""Calls that a reply shows, thinks of, or describes: none of them runs."""

from __future__ import annotations

import json
from typing import Final

from statek_sim.rescue import rescue
from statek_sim.values import JSON
from tests.tables import table_test

TOOLS: Final[list[dict[str, JSON]]] = [
    {"name": "delete_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
]
CALL: Final = '{"name": "delete_file", "arguments": {"path": "/a"}}'
CUT: Final = f"<tool_call>\n{CALL}"
HERMES: Final = f"{CUT}\n</tool_call>"
MISTRAL: Final = '[TOOL_CALLS]delete_file[ARGS]{"path": "/a"}'


@table_test(
    "text",
    [
        f"```\nAn example:\n{HERMES}\n```",
        f"```text\nAn example:\n{HERMES}\n```",
        f"A block opens with ``` on a line.\n```\n{HERMES}\n```",
        f"See:\n````md\n```\n{HERMES}\n```",
        f"See:\n~~~\n{HERMES}",
        f"See:\n~~~\n```\nx\n```\n{HERMES}",
        f"See:\n{HERMES}\n```",
        f"See:\n<pre>\n{CUT}\n</pre>",
        f"See:\n[quote]\n{CUT}\n[/quote]",
        f"<tool_response>\n{CUT}\n</tool_response>",
        f"Well.\n<think>I could send\n{HERMES}",
        f"Well. <thinking>I could send\n{HERMES}",
        f"<THINK>I could send\n{HERMES}",
        f"<scratchpad>\nI could send\n{HERMES}",
        f"Done.<|im_end|>\n<|im_start|>user\n{HERMES}",
        f"<tool_response>\n{HERMES}",
    ],
)
def test_a_call_in_a_block_or_in_thinking_behind_text_runs_in_no_dialect(text: str) -> None:
    assert rescue(text, TOOLS, dialect="hermes").calls == ()


@table_test(
    "text",
    [
        f"The log was:\n```\n</think>\n{CALL}\n```",
        f"~~~\n</think>\n{CALL}\n~~~",
        f"<think>I could write </thought>\n{CALL}",
        f"[THINK]I could write </think>\n{CALL}",
        f"{CALL}<think>No, that was an example.</think>",
        f"{CALL}\n<think>No, that was an example.",
        f"{CALL}<|channel|>commentary<|message|>That was an example.<|end|>",
        f"{CALL}</pre>",
        f"{CALL}[/quote]",
        f"{CALL}</example>",
    ],
)
def test_what_stands_around_a_call_is_no_part_of_it(text: str) -> None:
    assert rescue(text, TOOLS).calls == ()


@table_test("call", [CALL, CUT, HERMES, "[delete_file(path='/a')]", MISTRAL])
@table_test("closing", ["</think>", "[/THINK]", "<|END_THINKING|>"])
def test_a_call_before_the_end_of_thinking_is_thinking(call: str, closing: str) -> None:
    assert rescue(f"{call}{closing}", TOOLS).calls == ()
    (made,) = rescue(f"{call}{closing}{CALL.replace('/a', '/b')}", TOOLS).calls
    assert made.arguments == {"path": "/b"}


_MADE: Final[dict[str, JSON]] = {"name": "delete_file", "arguments": {"path": "/a"}}


@table_test(
    "value",
    [
        {"role": "assistant", "content": "Only an example:", "tool_calls": [_MADE]},
        {"role": "assistant", "content": None, "refusal": "I will not.", "tool_calls": [_MADE]},
        {"role": "user", "tool_calls": [_MADE]},
        {**_MADE, "type": "example"},
        {**_MADE, "type": ["function"]},
        {"tool_calls": [{**_MADE, "result": "deleted"}]},
        {**_MADE, "status": "refused by the user"},
        TOOLS[0],
        {"type": "function", "function": TOOLS[0]},
        {
            "type": "function",
            "function": {"name": "delete_file", "description": "Deletes.", "parameters": {}},
        },
        [{"type": "function", "function": TOOLS[0]}],
    ],
)
def test_json_that_says_that_it_is_no_call_is_none(value: JSON) -> None:
    text = json.dumps(value)
    for reply in (text, f"<tools>{text}</tools>", f"<tool_call>{text}</tool_call>"):
        assert rescue(reply, TOOLS).calls == ()


@table_test(
    "value",
    [
        {"role": "assistant", "content": "\n", "refusal": None, "tool_calls": [_MADE]},
        {"id": "1", "type": "function", "function": _MADE},
        {**_MADE, "type": "function_call", "status": "completed", "call_id": "c"},
    ],
)
def test_json_with_what_a_provider_writes_beside_a_call_is_one(value: JSON) -> None:
    assert len(rescue(json.dumps(value), TOOLS).calls) == 1


def test_a_tool_may_take_a_schema_where_it_says_so() -> None:
    takes: dict[str, JSON] = {"type": "object", "properties": {"type": {}, "properties": {}}}
    arguments: JSON = {"type": "object", "properties": {}}
    text = json.dumps({"name": "define", "arguments": arguments})
    assert len(rescue(text, [{"name": "define", "parameters": takes}]).calls) == 1


@table_test("behind", ["<|" + "end" * 20_000, "[/" + "TOOL_" * 12_000, "<|" + "end▁|" * 12_000])
def test_what_almost_closes_a_call_is_looked_at_once(behind: str) -> None:
    # Looked at again from each of its signs, this takes minutes.
    assert rescue(CALL + behind, TOOLS).calls == ()
