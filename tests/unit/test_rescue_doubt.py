"""Rescue parsing where a mark is lost or too many: a call is taken only where every reading gives the same one."""

from __future__ import annotations

import pytest

from statek_sim.agent.rescue import Reason, Rescued, rescue


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
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}
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
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}
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
