from __future__ import annotations

import json

import pytest

from statek_sim.runtime.agents.dialog import (
    arguments_json,
    assistant_calls,
    assistant_code,
    console_message,
    system_message,
    tool_message,
    user_message,
)
from statek_sim.runtime.state.chat_log import CallSpec
from statek_sim.runtime.state.chat_style import ChatStyle
from tests.tables import table_test

CONSOLE_TEXTS = [
    (None, "a\nb", None, "> a\n> b"),
    (None, "", None, ""),
    (ChatStyle.CONSOLE, "a\n\nb", None, "> a\n> \n> b"),
    (ChatStyle.CONSOLE, "a", "OUT", "<OUT>\n> a\n</OUT>"),
    (ChatStyle.CONSOLE, "", "OUT", "<OUT>\n\n</OUT>"),
    (ChatStyle.MARKDOWN, "a\nb", None, "a\nb"),
    (ChatStyle.MARKDOWN, "a", "OUT", "<OUT>\na\n</OUT>"),
    (ChatStyle.MD_DIALOG, "a\nb", None, "<CONSOLE>\na\nb\n</CONSOLE>"),
    (ChatStyle.MD_DIALOG, "", None, "<CONSOLE>\n\n</CONSOLE>"),
    (ChatStyle.MD_DIALOG, "a", "OUT", "<OUT>\n<CONSOLE>\na\n</CONSOLE>\n</OUT>"),
    (ChatStyle.DIRECT, "a\nb", None, "a\nb"),
    (ChatStyle.DIRECT, "a", "OUT", "<OUT>\na\n</OUT>"),
]


@table_test(("style", "text", "tag", "shown"), CONSOLE_TEXTS)
def test_console_output_and_tool_results_are_wrapped_alike(
    style: ChatStyle | None, text: str, tag: str | None, shown: str
) -> None:
    assert console_message(text, style, tag) == {"role": "user", "content": shown}
    assert tool_message(text, "c1", style, tag) == {"role": "tool", "content": shown, "tool_call_id": "c1"}


def test_system_and_user_texts_are_sent_as_they_are() -> None:
    assert system_message("Be brief.") == {"role": "system", "content": "Be brief."}
    assert user_message("> hi") == {"role": "user", "content": "> hi"}


def test_code_is_fenced_in_every_style_but_direct() -> None:
    fenced = {"role": "assistant", "content": "```python\nx = 1\n```"}
    for style in (None, ChatStyle.CONSOLE, ChatStyle.MARKDOWN, ChatStyle.MD_DIALOG):
        assert assistant_code("x = 1", style) == fenced
    assert assistant_code("x = 1", ChatStyle.DIRECT) == {"role": "assistant", "content": "x = 1"}


def test_a_call_request_has_the_wire_form_of_statek() -> None:
    calls = [CallSpec("c1", "f", ("lost",), {"a": 1, "b": "é"}), CallSpec("c2", "g")]
    assert json.dumps(assistant_calls("", calls)) == (
        '{"role": "assistant", "content": null, "tool_calls": ['
        '{"id": "c1", "type": "function", "function": '
        '{"name": "f", "arguments": "{\\"a\\": 1, \\"b\\": \\"\\\\u00e9\\"}"}}, '
        '{"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}'
    )
    assert assistant_calls("Wait.", calls)["content"] == "Wait."


def test_only_python_cli_code_loses_its_fences() -> None:
    kwargs = {"code": "Run:\n```py\nx = 1\n```"}
    assert arguments_json(CallSpec("1", "python_cli", (), kwargs)) == '{"code": "# Run:\\nx = 1"}'
    assert json.loads(arguments_json(CallSpec("1", "other", (), kwargs))) == kwargs


def test_collections_become_json_arrays_and_sets_are_sorted() -> None:
    call = CallSpec("1", "f", (), {"s": {"b", "a"}, "t": (1, 2), "y": b"ab"})
    assert arguments_json(call) == '{"s": ["a", "b"], "t": [1, 2], "y": [97, 98]}'


def test_a_value_json_cannot_hold_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"^Object of type complex is not JSON serializable$"):
        arguments_json(CallSpec("1", "f", (), {"z": 1j}))
