"""A rescued call runs only if the reply is the call."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.errors import BadInput
from statek_sim.rescue import DIALECTS, Reason, RescueStream, dialect_of, rescue
from statek_sim.values import JSON
from tests.rescue.phrasings import PHRASINGS
from tests.rescue.table import DIALECT_OF, score, table
from tests.tables import table_test

CALL = '{"name": "find", "arguments": {"what": "keys"}}'
HERMES = f"<tool_call>{CALL}</tool_call>"


def _names(text: str, tools: list[str] | None = None, dialect: str | None = None) -> list[str]:
    return [call.name for call in rescue(text, tools or ["find"], dialect=dialect).calls]


def _reasons(text: str, dialect: str | None = None) -> list[Reason]:
    return [refusal.reason for refusal in rescue(text, ["find"], dialect=dialect).refused]


@table_test("rendering", sorted(RENDERINGS))
def test_a_call_that_a_sentence_holds_is_none_in_any_language(rendering: str) -> None:
    arguments: Mapping[str, JSON] = {"path": "/"}
    call = RENDERINGS[rendering]("delete_file", arguments)
    forms = [form for phrasings in PHRASINGS.values() for form in phrasings.values()]
    for form in forms:
        for dialect in (None, DIALECT_OF.get(rendering)):
            for tools in (["delete_file"], None):
                assert rescue(form.format(call=call), tools, dialect=dialect).calls == (), form


def test_the_table_of_our_own_renderings_is_read_by_the_rule() -> None:
    counted = score()
    all_of_them = counted["all"]
    print(table(counted))
    assert all_of_them["right"] >= 0.95 * all_of_them.total()
    assert all_of_them["wrong"] <= 0.005 * all_of_them.total()


@table_test(
    "text",
    [
        CALL,
        f"\n  {CALL}\n",
        f"<think>Which?</think>\n{CALL}",
        f"Which?\n</think>\n{CALL}",
        f"{CALL}<|im_end|>",
        f"```json\n{CALL}\n```",
        f"```\n{HERMES}\n```\n",
        HERMES,
    ],
)
def test_thinking_space_end_tokens_and_a_block_around_the_reply_are_no_text(text: str) -> None:
    assert _names(text) == ["find"]


def test_several_calls_in_a_row_are_several() -> None:
    for between in ("\n", ", ", "; ", "<think>and</think>"):
        assert _names(CALL + between + CALL) == ["find", "find"]
    assert _names(f"{CALL}\nand\n{CALL}") == []


@table_test(
    "text",
    [
        f"{CALL} and so on",
        f"{CALL}\nDone.",
        f"So: {CALL}",
        f"I will look.\n{CALL}",
        f"I will look.\n{HERMES}",
        f'"{CALL}"',
        f"> {CALL}",
        f"`{CALL}`",
        f"Look:\n```json\n{CALL}\n```",
        f"<think>hm</think>I must not send {CALL}",
        f"<think>one</think>two</think>{CALL}",
    ],
)
def test_a_call_beside_text_is_refused_and_names_the_tool(text: str) -> None:
    result = rescue(text, ["find"])
    assert result.calls == ()
    assert [(refusal.reason, refusal.name) for refusal in result.refused] == [(Reason.NOT_ALONE, "find")]


def test_where_one_call_cannot_run_none_does() -> None:
    other = CALL.replace("find", "fetch")
    assert rescue(CALL + other, ["find"]).calls == ()
    assert _reasons(CALL + other) == [Reason.NOT_OFFERED]
    assert _reasons(CALL + CALL[:-10]) == [Reason.CUT]


@table_test(
    "text",
    [
        "Done.",
        "The <tool_call> tag opens a call.",
        '{"name": "Ada", "age": 36}',
        '[{"name": "Ada"}, {"name": "find"}]',
        '{"name": "find", "of": "a tool"}',
        "See [find](docs) or find(what).",
        "[1] says {x}.",
        "",
    ],
)
def test_an_answer_without_a_call_of_an_offered_tool_is_an_answer(text: str) -> None:
    result = rescue(text, ["find"])
    assert (result.calls, result.refused) == ((), ())


# -- the dialect of a model ---------------------------------------------------------------------------------------


def test_text_may_stand_before_a_call_in_the_models_own_format_whose_token_opens_a_line() -> None:
    text = f"I will look.\n{HERMES}"
    result = rescue(text, ["find"], dialect="hermes")
    assert ([call.name for call in result.calls], result.text) == (["find"], "I will look.")
    stream = RescueStream(["find"], dialect="hermes")
    for piece in (text[:30], text[30:]):
        stream.feed(piece)
    assert stream.finish() == result


@table_test(
    "text",
    [
        f"I will look. {HERMES}",
        f"I will look.\n{HERMES}\nNow.",
        f"I will look.\n{CALL}",
        f"The tag <tool_call> opens it:\n{HERMES}",
        f"Like this:\n```\n{HERMES}",
        f"Like this:\n> {HERMES}",
        f"Like this:\n\n    {HERMES}",
        f"Like this:\n\t{HERMES}",
    ],
)
def test_other_text_beside_a_call_is_refused_in_a_named_dialect_too(text: str) -> None:
    assert _names(text, dialect="hermes") == []


def test_a_token_that_opens_no_call_of_an_offered_tool_is_text() -> None:
    text = "<|channel|>commentary to=python <|constrain|>json<|message|>{}"
    for dialect in DIALECTS:
        assert _names(text, dialect=dialect) == []
        assert _names(f"{text}\n{text}", dialect=dialect) == []


def test_a_named_dialect_reads_other_formats_where_they_are_the_reply() -> None:
    assert _names(CALL, dialect="hermes") == _names(HERMES, dialect="kimi") == ["find"]


def test_every_dialect_with_a_token_takes_a_line_before_it() -> None:
    for rendering, dialect in DIALECT_OF.items():
        text = RENDERINGS[rendering]("find", {"what": "keys"})
        assert _names(f"I will look.\n{text}", dialect=dialect) == ["find"], rendering


@table_test(
    ("model", "dialect"),
    [
        ("qwen/Qwen3-Coder-30B", "qwen-coder"),
        ("Qwen3-8B", "hermes"),
        ("mistralai/Ministral-3-8B-Instruct", "mistral"),
        ("openai/gpt-oss-120b", "harmony"),
        ("gpt-4o", None),
        ("", None),
    ],
)
def test_the_name_of_a_model_says_its_dialect(model: str, dialect: str | None) -> None:
    assert dialect_of(model) == dialect


def test_a_dialect_that_is_not_known_is_bad_input() -> None:
    with pytest.raises(
        BadInput, match=r"^unknown dialect 'hermse'; expected one of .*Did you mean 'hermes'\?$"
    ):
        rescue("", dialect="hermse")
    assert "hermes" in DIALECTS


def test_calls_of_tools_that_only_read_may_stand_beside_text_where_that_is_set() -> None:
    text = f"I will look.\n{HERMES}\nThen I go on."
    assert _names(text) == []
    result = rescue(text, ["find", "delete"], read_only=["find"])
    assert [call.name for call in result.calls] == ["find"]
    assert rescue(text.replace('"find"', '"delete"'), ["find", "delete"], read_only=["find"]).calls == ()
    assert rescue(f"So {HERMES}", ["find"], read_only=["find"]).calls == ()


# -- tokens without a call, and small repairs ---------------------------------------------------------------------


@table_test(
    "text",
    [
        "<|channel|>commentary to=functions.find <|constrain|>json<|message|>[1]<|call|>",
        "<|channel|>commentary to=functions.find <|constrain|>json<|message|>keys<|call|>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>[1]<|tool_call_end|>",
        "<|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>keys<|tool_call_end|>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>[1]<｜tool▁call▁end｜>",  # noqa: RUF001
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>keys<｜tool▁call▁end｜>",  # noqa: RUF001
        '<tool_call>{"name": "find", "arguments": [1]}</tool_call>',
        "<tool_call>[1]</tool_call>",
        "<tool_call>find the keys</tool_call>",
        "[TOOL_CALLS]find[ARGS][1]",
    ],
)
def test_tokens_around_arguments_that_are_no_object_are_refused(text: str) -> None:
    assert _names(text) == []
    assert _reasons(text) == [Reason.BROKEN]


@table_test("key", ["a b", "a-b", "@a", "$a", "a.b", "a/b", "1a", "#a", "a%", "a+b", "?"])
def test_gemmas_bare_keys_may_hold_signs(key: str) -> None:
    (call,) = rescue(f"<|tool_call>call:find{{{key}:1}}<tool_call|>").calls
    assert call.arguments == {key: 1}


def test_a_list_of_python_calls_may_end_with_a_comma() -> None:
    result = rescue("[find(a=1), find(a=2),]", ["find"])
    assert [call.arguments for call in result.calls] == [{"a": 1}, {"a": 2}]
    assert "trailing_commas" in result.stages
