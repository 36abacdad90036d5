"""Rescue parsing where a mark is lost or too many: a call is taken only where every reading gives the same one."""

from __future__ import annotations

import pytest

from statek_sim.agent.rescue import Reason, Rescued, rescue
from statek_sim.values import JSON


def _calls(result: Rescued) -> list[tuple[str, dict[str, object]]]:
    return [(call.name, dict(call.arguments)) for call in result.calls]


def _reasons(result: Rescued) -> list[Reason]:
    return [refusal.reason for refusal in result.refused]


# -- brackets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "f", "arguments": {"a": {"b": 1, "c": 2}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"a": {"b": 1}, "c": 2}}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"a": 1}}, "b": 2}</tool_call>',
        '<tool_call>{"name": "f",} "arguments": {"a": 1}}</tool_call>',
        '<function=f>{"a": 1}, "b": 2}</function>',
        '{"name": "f", "arguments": {"a": 1}}, "b": 2}',
    ],
)
def test_a_bracket_that_may_be_anyones_is_refused(text: str) -> None:
    result = rescue(text, [{"name": "f", "parameters": {}}])
    assert (_calls(result), _reasons(result)) == ([], [Reason.BROKEN])


def test_a_member_beside_the_arguments_that_is_one_of_them_is_refused() -> None:
    tool: dict[str, JSON] = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}
    text = '<tool_call>{"name": "f", "arguments": {"a": 1}, "%s": 2}</tool_call>'
    assert _calls(rescue(text % "thought", [tool])) == [("f", {"a": 1})]
    assert _calls(rescue(text % "b", [tool])) == []
    assert _calls(rescue('<tool_call>{"name": "f", " arguments": {"a": 1}}</tool_call>', [tool])) == []


# -- tags --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damaged",
    [
        "<parameter=a>\nx\n</paramter>\n<parameter=b>\ny\n</parameter>",
        "<parameter=a>\nx\n</parameter>\n<paarmeter=b>\ny\n</parameter>",
        "<parameter=a>\nx\n/parameter>\n<parameter=b>\ny\n</parameter>",
        "<parameter=a>x</parameter>:\n<parameter=b>y</parameter>",
        "<parameter=a>x</parameter<>parameter=b>y</parameter>",
    ],
)
def test_an_argument_with_a_damaged_tag_does_not_take_it_along(damaged: str) -> None:
    tool: dict[str, JSON] = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}
    result = rescue(f"<tool_call>\n<function=f>\n{damaged}\n</function>\n</tool_call>", [tool])
    assert (_calls(result), _reasons(result)) == ([], [Reason.BROKEN])


def test_an_argument_may_talk_about_its_closing_tag() -> None:
    text = "<function=f>\n<parameter=a>\nwrite </parameter> behind it\n</parameter>\n</function>"
    assert _calls(rescue(text)) == [("f", {"a": "write </parameter> behind it"})]


@pytest.mark.parametrize("margin", ["", "  ", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_margins_and_newlines_of_the_format_are_not_the_arguments(margin: str, newline: str) -> None:
    lines = ["<function=f>", "<parameter=a>", "x", "  y", "</parameter>", "</function>"]
    text = newline.join(margin + line for line in lines)
    assert _calls(rescue(text)) == [("f", {"a": f"x{newline}  y"})]


def test_deepseeks_tags_may_have_a_space() -> None:
    text = (
        '<｜DSML｜ calls>\n<｜DSML｜ invoke name="f">\n<｜DSML｜ parameter name="a" string="true">  x\n'  # noqa: RUF001
        "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"  # noqa: RUF001
    )
    result = rescue(text)
    assert (_calls(result), result.text) == ([("f", {"a": "  x\n"})], "")


def test_a_call_may_be_closed_in_its_opening_tag() -> None:
    text = '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f"/>\n</｜DSML｜tool_calls>'  # noqa: RUF001
    assert _calls(rescue(text)) == [("f", {})]


def test_keys_have_spaces_and_escapes_where_their_format_has() -> None:
    gemma = '<|tool_call>call:f{key with space:1,s:<|"|>x,y} "q"<|"|>}<tool_call|>'
    assert _calls(rescue(gemma)) == [("f", {"key with space": 1, "s": 'x,y} "q"'})]
    kimi = (
        '<|open|>call tool="f" index="1"<|sep|><|open|>argument key="q&amp;a" type="string"<|sep|>a & b'
        "<|close|>argument<|sep|><|close|>call<|sep|>"
    )
    assert _calls(rescue(kimi)) == [("f", {"q&a": "a & b"})]


def test_a_line_that_closes_an_argument_and_opens_another_has_two_readings() -> None:
    said = "Close tags inline: </parameter> and </function> and <parameter=path> are text here."
    text = f"<function=f>\n<parameter=a>\n{said}\n</parameter>\n</function>"
    assert _reasons(rescue(text)) == [Reason.BROKEN]


@pytest.mark.parametrize("tail", ["</function>\n</tool_call>", "</function></tool_call>"])
def test_a_last_argument_may_lose_its_closing_tag_when_the_call_is_closed(tail: str) -> None:
    text = "<tool_call>\n<function=f>\n<parameter=a>\nls -la\n"
    assert _calls(rescue(text + tail)) == [("f", {"a": "ls -la"})]
    assert _reasons(rescue(text + "</function>")) == [Reason.CUT]
    assert _reasons(rescue(f"{text}</param\n{tail}")) == [Reason.BROKEN]


def test_a_word_in_a_wrapper_is_a_call_of_an_offered_tool_only() -> None:
    text = "<tool_call>look</tool_call>"
    assert _calls(rescue(text)) == []
    assert _calls(rescue(text, ["look"])) == [("look", {})]


def test_a_message_to_the_user_makes_no_call() -> None:
    text = '<|channel|>final<|message|>{"name": "f", "arguments": {}}<|return|>'
    assert _calls(rescue(text)) == []
    call = "<|start|>assistant to=functions.f<|channel|>commentary<|message|>{}"
    both = f"<|channel|>final<|message|>One moment.<|end|>{call}"
    assert (_calls(rescue(both)), rescue(both).text) == ([("f", {})], "One moment.")


def test_gemmas_values_without_quotes_are_not_two_values() -> None:
    for pair in ("nullnull", "12null", "0b:null", "b:1"):
        assert _reasons(rescue(f"<|tool_call>call:f{{a:{pair}}}<tool_call|>")) == [Reason.BROKEN], pair
    assert _calls(rescue("<|tool_call>call:f{a:Main Street 12,b:http://x}<tool_call|>")) == [
        ("f", {"a": "Main Street 12", "b": "http://x"})
    ]


def test_an_integer_may_have_zeros_before_it() -> None:
    tool: dict[str, JSON] = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }
    assert _calls(rescue("<function=f><parameter=a>007</parameter></function>", [tool])) == [("f", {"a": 7})]


# -- lists of calls ----------------------------------------------------------------------------------------------

ONE = '{"name": "f", "arguments": {"a": 1}}'
TWO = '{"name": "g", "arguments": {}}'


@pytest.mark.parametrize(
    ("text", "names", "reasons"),
    [
        (f"<tool_calls>[{ONE}{TWO}]</tool_calls>", ["f", "g"], []),
        (
            f'<tool_calls>[{{"name": "h", "arguments": {{"at": 15:30}}}}, {ONE}]</tool_calls>',
            ["f"],
            ["broken"],
        ),
        (f"<tool_calls>\n{ONE}\n{{invalid json here}}\n{TWO}\n</tool_calls>", ["f", "g"], ["broken"]),
        (f'<tool_calls>\n{ONE}\n{{"name": "h"}}\n{TWO}\n</tool_calls>', ["f", "g"], ["broken"]),
        (f'<tool_calls>\n{ONE}\n{{"arguments": {{"a": 1}}}}\n</tool_calls>', ["f"], ["broken"]),
        (f'[TOOL_CALLS] [{ONE}, {{"name": "g", "argum', ["f"], ["cut"]),
        (f'[TOOL_CALLS] [{ONE}, {{"name": "g}}]', ["f"], ["cut"]),
        (f'[TOOL_CALLS] [{{"name": "h", "arguments": {{"a": "x"y"}}}}, {ONE}]', [], ["broken"]),
        (f"[TOOL_CALLS] [{ONE}, {TWO}", ["f", "g"], []),
        ("[TOOL_CALLS] [", [], ["cut"]),
    ],
)
def test_complete_calls_of_a_list_stay_and_the_others_are_refused(
    text: str, names: list[str], reasons: list[str]
) -> None:
    result = rescue(text)
    assert ([call.name for call in result.calls], _reasons(result)) == (names, reasons)


# -- calls that are data, and the other way round ----------------------------------------------------------------


def test_a_name_with_a_text_is_data_where_any_name_is_accepted() -> None:
    alice = '{"name": "Alice", "input": "text"}'
    assert (_calls(rescue(alice)), _reasons(rescue(alice))) == ([], [])
    assert _reasons(rescue(alice, ["Alice"])) == [Reason.BROKEN]
    assert _reasons(rescue(f"<tool_call>{alice}</tool_call>")) == [Reason.BROKEN]
    assert _calls(rescue('{"name": "f", "input": "{\\"a\\": 1}"}')) == [("f", {"a": 1})]


@pytest.mark.parametrize(
    ("text", "tools", "reasons"),
    [
        ("f(a='x'", ["f"], [Reason.CUT]),
        ("f(a='x", ["f"], [Reason.CUT]),
        ("f(a=1, ", ["f"], [Reason.CUT]),
        ("<think>hm</think>f(", ["f"], [Reason.CUT]),
        ("[f(a='x'", None, [Reason.CUT]),
        ("[f(a=1), g(", None, [Reason.CUT]),
        ("f(a='x'", None, []),
        ("f(x) is a function", ["f"], []),
        ("[see(the docs", None, []),
    ],
)
def test_a_python_call_that_is_cut_is_refused(
    text: str, tools: list[str] | None, reasons: list[Reason]
) -> None:
    result = rescue(text, tools)
    assert (_calls(result), _reasons(result)) == ([], reasons)


def test_a_reply_that_is_python_calls_of_offered_tools_is_read() -> None:
    assert _calls(rescue("f(a=1)\ng(b='x')", ["f", "g"])) == [("f", {"a": 1}), ("g", {"b": "x"})]
    assert _calls(rescue("f(a=1) gives one", ["f"])) == []


def test_cohere_names_no_tool_when_it_calls_none() -> None:
    text = 'Action: ```json\n[{"tool_name": "directly-answer", "parameters": {}}]\n```'
    assert _calls(rescue(text)) == []
    assert _calls(rescue(text, ["directly-answer"])) == [("directly-answer", {})]
