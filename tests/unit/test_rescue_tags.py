"""Calls whose tags are names (Cline, Roo), and calls that are taken only where nothing else can be meant."""

from __future__ import annotations

import pytest

from statek_sim.rescue import Reason, rescue
from statek_sim.values import JSON
from tests.tables import table_test

READ: dict[str, JSON] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["path"],
}
WRITE: dict[str, JSON] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
}
TOOLS: dict[str, dict[str, JSON]] = {"read_file": READ, "write_to_file": WRITE, "ls": {"type": "object"}}


def _calls(text: str) -> list[tuple[str, dict[str, JSON]]]:
    return [(call.name, dict(call.arguments)) for call in rescue(text, TOOLS).calls]


def test_a_tag_that_is_an_offered_tool_is_a_call_with_typed_arguments() -> None:
    text = "<read_file>\n<path>src/a.py</path>\n<line>3</line>\n</read_file>"
    assert _calls(text) == [("read_file", {"path": "src/a.py", "line": 3})]
    assert _calls(f"I will look.\n{text}") == []


def test_a_text_on_lines_of_its_own_loses_the_newlines_of_the_format() -> None:
    text = "<write_to_file><path>a</path><content>\n<p>one</p>\n  two\n</content></write_to_file>"
    assert _calls(text) == [("write_to_file", {"path": "a", "content": "<p>one</p>\n  two"})]


def test_a_text_between_cdata_marks_is_kept_as_it_is() -> None:
    said = "<write_to_file>\n<path>a</path>\n<content>{}</content>\n</write_to_file>".format
    for inside in ("x < y", "\n</content>\n", "<read_file><path>b</path></read_file>"):
        assert _calls(said(f"<![CDATA[{inside}]]>")) == [
            ("write_to_file", {"path": "a", "content": inside})
        ], inside
    for broken in ("<![CDATA[x", "<![CDATA[x]]>y", "<![CDATA[x]]></path>", "<!CDATA[x]]>", "<![CDAT[Ax]]>"):
        assert _calls(said(broken)) == [], broken
        element = f'<invoke name="f"><parameter name="a">{broken}</parameter></invoke>'
        assert rescue(element).calls == (), broken


def test_cdata_ends_in_one_way_in_names_and_in_elements() -> None:
    tags = "<ls><a><![CDATA[{}</a></ls>"
    element = '<invoke name="ls"><parameter name="a"><![CDATA[{}</parameter></invoke>'
    offered: dict[str, dict[str, JSON]] = {"ls": {"properties": {"a": {"type": "string"}}}}
    for form in (tags, element):
        for inside in ("x]]>", "x]]>\n  "):
            result = rescue(form.format(inside), offered)
            assert [dict(call.arguments) for call in result.calls] == [{"a": "x"}], (form, inside)
        for inside, reason in (("x", Reason.CUT), ("x]]> y", Reason.BROKEN)):
            result = rescue(form.format(inside), offered)
            assert [refusal.reason for refusal in result.refused] == [reason], (form, inside)
        half = form.format("x]]>")
        cut = rescue(half[: half.index("]]>") + 3], offered)
        assert [refusal.reason for refusal in cut.refused] == [Reason.CUT], form


@pytest.mark.parametrize("text", ["<ls></ls>", "<ls>\n</ls>"])
def test_a_tool_without_arguments_is_an_empty_tag(text: str) -> None:
    assert _calls(text) == [("ls", {})]


def test_html_is_no_call_and_no_attempt_at_one() -> None:
    result = rescue("<table><tr><td>1</td></tr></table>" * 2_000, TOOLS)
    assert result.calls == ()
    assert result.refused == ()


@table_test(
    ("text", "reason"),
    [
        ("<read_file><path>a", Reason.CUT),
        ("<read_file><path>a</path>", Reason.CUT),
        ("<read_file><file>a</file></read_file>", Reason.BROKEN),
        ("<read_file><path>a</path><path>b</path></read_file>", Reason.BROKEN),
        ("<read_file><path>a <line>3</line></path></read_file>", Reason.BROKEN),
        ("<ls> see </ls>", None),
        ("<write_to_file><content>x</content></write_to_file> y</content></write_to_file>", Reason.NOT_ALONE),
        ("<write_to_file><content>\nx</content></write_to_file>", Reason.BROKEN),
        ("For example: <read_file><path>a</path></read_file>", Reason.NOT_ALONE),
        ("Use <read_file><path>a</path></read_file> to read one.", Reason.NOT_ALONE),
    ],
)
def test_tags_that_may_mean_something_else_are_refused(text: str, reason: Reason | None) -> None:
    result = rescue(text, TOOLS)
    assert result.calls == ()
    assert [refusal.reason for refusal in result.refused][:1] == ([] if reason is None else [reason])


def test_what_may_be_a_number_or_a_text_is_refused_where_no_tool_is_listed() -> None:
    text = "<tool_call><function=f><parameter=count>42</parameter></function></tool_call>"
    result = rescue(text, None)
    assert result.calls == ()
    assert result.refused[0].why == "cannot tell whether '42' is a string: no tool schema was given"
    for kind, value in (("integer", 42), ("string", "42")):
        schema: dict[str, JSON] = {"type": "object", "properties": {"count": {"type": kind}}}
        assert rescue(text, {"f": schema}).calls[0].arguments == {"count": value}


def test_a_text_that_is_no_number_is_a_text_without_any_tool_listed() -> None:
    text = "<tool_call><function=f><parameter=city>Oslo</parameter></function></tool_call>"
    assert rescue(text, None).calls[0].arguments == {"city": "Oslo"}


@table_test(
    "unit",
    [
        "<ls>",
        "<ls></ls>",
        "<read_file><path>",
        "<read_file><path>a</path>",
        "<read_file><path>a</path></read_file>",
        "<a><b>",
    ],
)
def test_twice_the_tags_take_at_most_twice_the_steps(unit: str) -> None:
    once, twice = (rescue(unit * times, TOOLS).steps for times in (2_000, 4_000))
    assert twice <= 2 * once + 100


# -- formats of which a piece is missing --------------------------------------------------------------------------


def _any(text: str) -> list[tuple[str, dict[str, JSON]]]:
    return [(call.name, dict(call.arguments)) for call in rescue(text).calls]


def test_react_says_several_calls_and_what_a_tool_does() -> None:
    one = 'Action: {}\nAction Input: {{"a": 1}}'.format
    assert _any(one("f") + "\n" + one("g")) == [("f", {"a": 1}), ("g", {"a": 1})]
    assert _any(one("f (adds two)")) == [("f", {"a": 1})]
    assert _any('  Action: f\n  Action Input: ** {"a": 1}') == [("f", {"a": 1})]
    assert _any('Action: f\nAction Input: g({"a": 1})') == []


def test_kimis_name_needs_its_number_where_the_format_is_written_in_full() -> None:
    call = '<|tool_call_begin|>{}<|tool_call_argument_begin|>{{"a": 1}}<|tool_call_end|>'.format
    assert _any(call("f") + call("g")) == [("f", {"a": 1}), ("g", {"a": 1})]
    assert _any(call("functions.f")) == []
    assert _any("<|tool_calls_section_begin|>" + call("f") + call("functions.g:1")) == []


def test_deepseeks_section_holds_a_call_without_its_token_but_not_without_the_separator() -> None:
    alone = '<|tool▁calls▁begin|>f<|tool▁sep|>{"a": 1}<|tool▁call▁end|>'
    assert _any(alone.replace("|", "\uff5c")) == [("f", {"a": 1})]
    unseparated = '<|tool▁call▁begin|>f\n```json\n{"a": 1}\n```<|tool▁call▁end|>'
    assert _any(unseparated.replace("|", "\uff5c")) == []


def test_lm_studios_brackets_hold_a_call() -> None:
    assert _any('[TOOL_REQUEST]{"name": "ls", "arguments": {}}[END_TOOL_REQUEST]') == [("ls", {})]


def test_names_in_lists_of_python_calls_may_have_hyphens_and_the_last_call_a_semicolon() -> None:
    assert _any("[add-note(name='a')]") == [("add-note", {"name": "a"})]
    assert _calls("read_file(path='a');") == [("read_file", {"path": "a"})]


@table_test("sign", "$.(|*")
def test_a_backslash_before_a_sign_that_needs_none_is_refused_in_json(sign: str) -> None:
    result = rescue(f'<tool_call>{{"name": "f", "arguments": {{"a": "x\\{sign}y"}}}}</tool_call>')
    assert result.calls == ()
    assert [refusal.reason for refusal in result.refused] == [Reason.BROKEN]
