"""Rescue parsing where a mark is lost or too many: a call is taken only where every reading gives the same one."""

from __future__ import annotations

import pytest

from statek_sim.rescue import Reason, Rescued, rescue
from statek_sim.values import JSON
from tests.tables import table_test

DSML = "\uff5cDSML\uff5c"


def _calls(result: Rescued) -> list[tuple[str, dict[str, object]]]:
    return [(call.name, dict(call.arguments)) for call in result.calls]


def _reasons(result: Rescued) -> list[Reason]:
    return [refusal.reason for refusal in result.refused]


# -- brackets ----------------------------------------------------------------------------------------------------


@table_test(
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
    assert (_calls(result), _reasons(result)[0] in (Reason.BROKEN, Reason.NOT_ALONE)) == ([], True)


def test_a_member_beside_the_arguments_that_is_one_of_them_is_refused() -> None:
    tool: dict[str, JSON] = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}
    text = '<tool_call>{"name": "f", "arguments": {"a": 1}, "%s": 2}</tool_call>'
    assert _calls(rescue(text % "thought", [tool])) == [("f", {"a": 1})]
    assert _calls(rescue(text % "b", [tool])) == []
    assert _calls(rescue('<tool_call>{"name": "f", " arguments": {"a": 1}}</tool_call>', [tool])) == []


# -- tags --------------------------------------------------------------------------------------------------------


@table_test(
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


@table_test("margin", ["", "  ", "\t"])
@table_test("newline", ["\n", "\r\n"])
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


def test_keys_have_spaces_where_their_format_has() -> None:
    gemma = '<|tool_call>call:f{key with space:1,s:<|"|>x,y} "q"<|"|>}<tool_call|>'
    assert _calls(rescue(gemma)) == [("f", {"key with space": 1, "s": 'x,y} "q"'})]


def test_a_line_that_closes_an_argument_and_opens_another_has_two_readings() -> None:
    said = "Close tags inline: </parameter> and </function> and <parameter=path> are text here."
    text = f"<function=f>\n<parameter=a>\n{said}\n</parameter>\n</function>"
    assert _reasons(rescue(text)) == [Reason.BROKEN]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n<function=f>\n<parameter=a>\nls -la\n</function>\n</tool_call>",
        "<function=f>\n<parameter=a>\nx\n<parameter=b>\ny\n</parameter>\n</function>",
        "<invoke name='f'><parameter name='a'>x<parameter name='b'>y</parameter></invoke>",
    ],
)
def test_an_argument_without_its_closing_tag_is_refused(text: str) -> None:
    assert rescue(text, ["f"]).calls == ()
    assert _reasons(rescue(text, ["f"]))[0] in (Reason.BROKEN, Reason.CUT)


def test_a_word_in_a_wrapper_is_a_call_of_an_offered_tool_only() -> None:
    text = "<tool_call>look</tool_call>"
    assert _calls(rescue(text)) == []
    assert _calls(rescue(text, ["look"])) == [("look", {})]


def test_a_word_in_two_wrappers_is_a_call_of_an_offered_tool_only() -> None:
    """Hunyuan's calls have a separator, others none: parsers of others are divided about a name alone."""
    text = "<tool_calls>\n<tool_call>look_up</tool_call>\n</tool_calls>"
    assert _calls(rescue(text)) == []
    assert _calls(rescue(text, ["look_up"])) == [("look_up", {})]


@table_test("value", ["Tom &amp; Jerry", "&#60;b&#62;", "&#x3C;", "  "])
def test_a_text_that_has_two_spellings_is_refused_where_no_tool_is_listed(value: str) -> None:
    said = f"<function=f><parameter=a>{value}</parameter></function>"
    assert _reasons(rescue(said)) == [Reason.BROKEN]
    tools: list[dict[str, JSON]] = [
        {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    ]
    assert _calls(rescue(said, tools)) == [("f", {"a": value})]
    assert _calls(rescue("<function=f><parameter=a>a & b; c</parameter></function>")) == [
        ("f", {"a": "a & b; c"})
    ]


def test_deepseeks_tags_with_asciis_bars_are_refused() -> None:
    said = (
        '<{0}tool_calls>\n<{0}invoke name="f">\n<{0}parameter name="a" string="true">x</{0}parameter>\n'
        "</{0}invoke>\n</{0}tool_calls>"
    )
    assert _calls(rescue(said.format(DSML))) == [("f", {"a": "x"})]
    ascii_bars = rescue(said.format("|DSML|"))
    assert (_calls(ascii_bars), _reasons(ascii_bars)) == ([], [Reason.BROKEN])


def test_a_call_without_a_name_is_none() -> None:
    assert _calls(rescue("<|tool_call>call:{city:Paris}<tool_call|>")) == []
    assert _calls(rescue("<|tool_call>call:f{city:Paris}<tool_call|>")) == [("f", {"city": "Paris"})]


def test_a_message_to_the_user_makes_no_call() -> None:
    text = '<|channel|>final<|message|>{"name": "f", "arguments": {}}<|return|>'
    assert _calls(rescue(text)) == []
    call = "<|start|>assistant to=functions.f<|channel|>commentary<|message|>{}"
    assert _calls(rescue(f"<|channel|>final<|message|>One moment.<|end|>{call}")) == []
    assert _calls(rescue(f"<|channel|>commentary<|message|>One moment.<|end|>{call}")) == [("f", {})]


def test_gemmas_values_without_quotes_are_not_two_values() -> None:
    for pair in ("nullnull", "12null", "0b:null", "b:1"):
        assert _reasons(rescue(f"<|tool_call>call:f{{a:{pair}}}<tool_call|>")) == [Reason.BROKEN], pair
    assert _calls(rescue("<|tool_call>call:f{a:Main Street 12,b:http://x}<tool_call|>")) == [
        ("f", {"a": "Main Street 12", "b": "http://x"})
    ]


# -- lists of calls ----------------------------------------------------------------------------------------------

ONE = '{"name": "f", "arguments": {"a": 1}}'
TWO = '{"name": "g", "arguments": {}}'


@table_test(
    ("text", "names", "reasons"),
    [
        (f"<tool_calls>[{ONE}{TWO}]</tool_calls>", ["f", "g"], []),
        (f"<tool_calls>\n{ONE}\n{TWO}\n</tool_calls>", ["f", "g"], []),
        (f'<tool_calls>[{{"name": "h", "arguments": {{"at": 15:30}}}}, {ONE}]</tool_calls>', [], ["broken"]),
        (f"<tool_calls>\n{ONE}\n{{invalid json here}}\n{TWO}\n</tool_calls>", [], ["broken"]),
        (f'<tool_calls>\n{ONE}\n{{"name": "h"}}\n{TWO}\n</tool_calls>', [], ["broken"]),
        (f'[TOOL_CALLS] [{ONE}, {{"name": "g", "argum', [], ["cut"]),
        (f"[TOOL_CALLS] [{ONE}, {TWO}", [], ["cut"]),
        ("[TOOL_CALLS] [", [], ["cut"]),
        ("<|tool_call_start|>[f(a='x'), g(b'y')]<|tool_call_end|>", [], ["broken"]),
    ],
)
def test_where_one_call_of_a_list_is_broken_none_runs(
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


@table_test(
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


# -- which format is spoken --------------------------------------------------------------------------------------


def test_a_call_inside_a_call_with_a_word_for_arguments_is_refused() -> None:
    text = '<|tool▁call▁begin|>f<|tool▁sep|>{"name": "f", "arguments": broken}<|tool▁call▁end|>'
    assert (_calls(rescue(text)), _reasons(rescue(text))) == ([], [Reason.BROKEN])


def test_coheres_name_with_another_formats_arguments_is_refused() -> None:
    text = '<tool_call>{"tool_name": "f", "arguments": {"a": 1}}</tool_call>'
    assert (_calls(rescue(text)), _reasons(rescue(text))) == ([], [Reason.BROKEN])
    assert _calls(rescue(text.replace("arguments", "parameters"))) == [("f", {"a": 1})]


def test_what_the_format_says_is_no_text_and_the_schema_says_is_one_is_refused() -> None:
    tool: dict[str, JSON] = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
    }
    text = (
        '<|DSML|invoke name="f"><|DSML|parameter name="a" string="%s">12e3</|DSML|parameter></|DSML|invoke>'
    ).replace("|DSML|", DSML)
    assert (_calls(rescue(text % "false", [tool])), _reasons(rescue(text % "false", [tool]))) == (
        [],
        [Reason.BROKEN],
    )
    assert _calls(rescue(text % "true", [tool])) == [("f", {"a": "12e3"})]


def test_an_opening_that_is_closed_too_early_is_no_part_of_the_value() -> None:
    text = (
        '<|DSML|invoke name="f"><|DSML|parameter name="a" >string="true">x</|DSML|parameter></|DSML|invoke>'
    ).replace("|DSML|", DSML)
    assert (_calls(rescue(text)), _reasons(rescue(text))) == ([], [Reason.BROKEN])


def test_json_between_the_tags_of_a_named_function_is_its_arguments() -> None:
    assert _calls(rescue('<function name="f">\n{"a": 1}\n</function>')) == [("f", {"a": 1})]
    assert _reasons(rescue('<function name="f">\n{"a": 1')) == [Reason.CUT]


def test_a_token_behind_which_another_format_begins_opens_nothing() -> None:
    assert _calls(rescue('<tool_call>\n[TOOL_CALLS] [{"name": "f", "arguments": {}}]')) == [("f", {})]


def test_arguments_that_do_not_fit_are_told_so_whatever_the_name_is_written_like() -> None:
    tool: dict[str, JSON] = {"name": "f", "parameters": {"type": "object", "required": ["a"]}}
    text = "<|tool_call_begin|>functions.%s:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    assert _reasons(rescue(text % "f", [tool])) == [Reason.SCHEMA]
    assert _reasons(rescue(text % "g", [tool])) == [Reason.NOT_OFFERED]


@table_test("words", [" and then more words", " 我调用了这个工具请等待。"])
@table_test(
    "call",
    [
        '<tool_call>{"name": "f", "arguments": {"a": "x"}}',
        '<tool_call>[{"name": "f", "arguments": {"a": "x"}}]',
        '<tool_call>f\n{"a": "x"}',
    ],
)
def test_words_behind_a_call_are_refused_in_every_form_of_a_wrapper(call: str, words: str) -> None:
    assert len(rescue(call).calls) == 1
    assert rescue(call + words).calls == ()
