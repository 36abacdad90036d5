"""A call that is rendered in any dialect and then mutated gives that call or a refusal, never another call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from hypothesis import assume, example, given
from hypothesis import strategies as st

from statek_sim.agent.rescue import Limits, Rescued, RescueStream, rescue
from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.values import JSON

# Words that formats, prose and traps are made of: strings in arguments hold them, too.
PIECES = st.sampled_from(
    [
        "a", "Paris", " ", "\n", '"', "'", "\\", "{", "}", "[", "]", ",", ":", "1", "-2.5", "true", "null",
        "</tool_call>",
        "<tool_call>", '{"name": "rm", "arguments": {}}', "[TOOL_CALLS]", "```", "`", "</think>", "<think>", "漢", "é",
        "<|python_tag|>", "<function=rm>", "</parameter>", "rm(x=1)", "//", "/*", "“", "”", "|", "=", "<arg_key>",
        '<|"|>', "functions.rm:0", "\t", "\x00", "NaN", "\u2028",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=5).map("".join)
KEYS = st.sampled_from(["a", "b", "city", "note", "x_1", "name", "arguments"])
VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.tuples(
    st.sampled_from(["f", "get_weather", "write_file"]), st.dictionaries(KEYS, VALUES, max_size=3)
)
PROSE = st.sampled_from(
    ["", "Sure, let me look that up.\n", "I'll check: ", "<think>which one?</think>\n", "Done { or [ not.\n"]
)


def _tools(name: str, arguments: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """Offer the call's tool, with the types of its arguments, and others that must not be called."""
    types: dict[str, JSON] = {key: {"type": _type(value)} for key, value in arguments.items()}
    schema: JSON = {"type": "object", "properties": types}
    return [{"name": name, "parameters": schema}, {"name": "rm", "parameters": {"type": "object"}}]


def _type(value: JSON) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {
        str: "string",
        int: "integer",
        float: "number",
        list: "array",
        dict: "object",
        type(None): "null",
    }
    return names[type(value)]


def _said(result: Rescued) -> list[tuple[str, str]]:
    return [(call.name, json.dumps(call.arguments, sort_keys=True)) for call in result.calls]


def _only_this(result: Rescued, name: str, arguments: Mapping[str, JSON]) -> None:
    assert all(said == (name, json.dumps(arguments, sort_keys=True)) for said in _said(result)), result
    assert len(result.calls) <= 1, result


@given(CALLS, st.sampled_from(sorted(RENDERINGS)), PROSE)
def test_a_call_in_any_dialect_is_read_as_it_was_made(
    call: tuple[str, dict[str, JSON]], dialect: str, prose: str
) -> None:
    name, arguments = call
    text = RENDERINGS[dialect](name, arguments)
    assume(text is not None and not (dialect == "python" and prose.endswith(": ")))
    result = rescue(prose + str(text), _tools(name, arguments))
    assert _said(result) == [(name, json.dumps(arguments, sort_keys=True))], (text, result)


@given(CALLS, st.sampled_from(sorted(RENDERINGS)), st.data())
def test_a_call_that_is_cut_is_that_call_or_none(
    call: tuple[str, dict[str, JSON]], dialect: str, data: st.DataObject
) -> None:
    name, arguments = call
    text = RENDERINGS[dialect](name, arguments)
    assume(text)
    cut = data.draw(st.integers(0, len(str(text))))
    _only_this(rescue(str(text)[:cut], _tools(name, arguments)), name, arguments)


@given(CALLS, st.sampled_from(sorted(RENDERINGS)), st.data())
def test_a_call_that_lost_a_bracket_or_quote_is_that_call_or_none(
    call: tuple[str, dict[str, JSON]], dialect: str, data: st.DataObject
) -> None:
    name, arguments = call
    text = RENDERINGS[dialect](name, arguments)
    assume(text)
    places = [match.start() for match in re.finditer(r'[{}\[\]":,]', str(text))]
    # A character of a string may be lost unseen; one of the format may not.
    plain = json.dumps(arguments, ensure_ascii=False)
    assume(places and not re.search(r'[{}\[\]":,\\\']', "".join(_strings(arguments))) and plain)
    at = data.draw(st.sampled_from(places))
    _only_this(rescue(str(text)[:at] + str(text)[at + 1 :], _tools(name, arguments)), name, arguments)


def _strings(value: JSON) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for member in value for text in _strings(member)]
    if isinstance(value, dict):
        return [text for member in value.values() for text in _strings(member)]
    return []


@given(CALLS, st.sampled_from(["trailing comma", "spaces", "python words", "comment", "fence", "twice"]))
def test_what_has_one_meaning_is_repaired(call: tuple[str, dict[str, JSON]], how: str) -> None:
    name, arguments = call
    said = json.dumps(dict(arguments), ensure_ascii=False)
    if how == "trailing comma" and arguments:
        said = said[:-1] + ", }"
    elif how == "spaces":
        said = json.dumps(dict(arguments), indent=2)
    elif how == "python words":
        said = repr(dict(arguments))
    elif how == "comment":
        said = "{ /* as asked */ " + said[1:]
    text = f'{{"name": "{name}", "arguments": {said}}}'
    text = f"```json\n{text}\n```" if how == "fence" else f"<tool_call>{text}</tool_call>"
    result = rescue(text, _tools(name, arguments))
    if how == "python words" and ("\\x" in said or "\\u" in said):
        _only_this(result, name, arguments)
    else:
        assert _said(result) == [(name, json.dumps(arguments, sort_keys=True))], (text, result)


@given(
    st.lists(PIECES | st.sampled_from([render("f", {"a": "b"}) or "" for render in RENDERINGS.values()])).map(
        "".join
    )
)
@example("<tool_call>" * 3)
def test_any_text_gives_a_result_and_any_split_the_same(text: str) -> None:
    result = rescue(text)
    for size in (1, 3, 7):
        stream = RescueStream()
        for start in range(0, len(text), size):
            stream.feed(text[start : start + size])
        assert stream.finish() == result
    encoded = text.encode()
    for span in [call.span for call in result.calls] + [refusal.span for refusal in result.refused]:
        assert 0 <= span.start <= span.end <= len(encoded)
        encoded[span.start : span.end].decode()


@given(
    st.lists(PIECES, min_size=1, max_size=4).map("".join),
    st.sampled_from(["", '{"name":"f","arguments":{"a":[', "<tool_call>"]),
)
def test_twice_the_text_takes_at_most_twice_the_steps(unit: str, start: str) -> None:
    limits = Limits(max_attempts=200, max_repaired_tokens=2_000)
    once = rescue(start + unit * 300, limits=limits).steps
    twice = rescue(start + unit * 600, limits=limits).steps
    assert twice <= 2 * once + 200
