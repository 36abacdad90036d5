"""A call that is rendered in any dialect and then mutated gives that call or a refusal, never another call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from hypothesis import assume, example, given
from hypothesis import strategies as st

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.rescue import Limits, Rescued, RescueStream, rescue
from statek_sim.values import JSON
from tests.tables import table_test

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
BEFORE = st.sampled_from(["", "\n ", "<think>which one?</think>\n", "which one?</think>\n\n"])
PROSE = st.sampled_from(["Sure, let me look that up.\n", "I'll check: ", "Done { or [ not.\n", "- ", '"'])


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


@given(CALLS, st.sampled_from(sorted(RENDERINGS)), BEFORE)
def test_a_call_in_any_dialect_is_read_as_it_was_made(
    call: tuple[str, dict[str, JSON]], dialect: str, before: str
) -> None:
    name, arguments = call
    text = RENDERINGS[dialect](name, arguments)
    assume(text is not None)
    result = rescue(before + str(text), _tools(name, arguments))
    assert _said(result) == [(name, json.dumps(arguments, sort_keys=True))], (text, result)


@given(
    CALLS, st.sampled_from(sorted(RENDERINGS)), PROSE, st.sampled_from(["", "\nDone.", " I wait.", '"', "。"])
)
def test_a_call_beside_prose_in_any_dialect_is_none(
    call: tuple[str, dict[str, JSON]], dialect: str, before: str, behind: str
) -> None:
    name, arguments = call
    text = RENDERINGS[dialect](name, arguments)
    assume(text is not None and "</think>" not in str(text))
    for around in (before + str(text), before + str(text) + behind, str(text) + behind):
        if around != text:
            assert _said(rescue(around, _tools(name, arguments))) == [], around


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
    # Gemma writes no space behind a comma: `[1,2]` without it is a number like any other.
    assume(not re.fullmatch(r"\w,[\w-]", str(text)[at - 1 : at + 2]))
    _only_this(rescue(str(text)[:at] + str(text)[at + 1 :], _tools(name, arguments)), name, arguments)


def _strings(value: JSON) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for member in value for text in _strings(member)]
    if isinstance(value, dict):
        return [text for member in value.values() for text in _strings(member)]
    return []


MARKS = [
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    ",",
    ":",
    "<",
    ">",
    "(",
    ")",
    "\\",
    "|",
    "/",
    "=",
    "`",
    "\n",
    " ",
    "\ufeff",
]
CUTS = [
    "</tool_call>",
    "<tool_call>",
    "```",
    "</think>",
    "<|im_end|>",
    "\n\nDone.",
    '{"a": 1}',
    "[TOOL_CALLS]",
]
TAILS = ["", "\n\nDone.", "<|im_end|>", "<tool_call>", "```", "\n"]
MUTATIONS = st.sampled_from(
    [
        "insert",
        "lose",
        "double",
        "swap",
        "crlf",
        "indent",
        "in quotes",
        "upper",
        "broken sibling",
        "tail",
        "lose behind",
    ]
)


def _safe_places(text: str, name: str, arguments: Mapping[str, JSON]) -> list[int]:
    """Return places that touch no name, key or value, so that what is done there can be seen."""
    told = dict(arguments)
    words = {name, *_keys(told)} | {_plain(value) for value in _leaves(told)}
    taken: set[int] = set()
    for word in filter(None, words):
        for match in re.finditer(re.escape(word), text):
            taken.update(range(match.start() - 2, match.end() + 2))
    return [at for at in range(len(text)) if at not in taken]


def _plain(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _leaves(value: JSON) -> list[JSON]:
    if isinstance(value, dict | list):
        members = value.values() if isinstance(value, dict) else value
        return [leaf for member in members for leaf in _leaves(member)]
    return [value]


def _keys(value: JSON) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for member in value.values() for key in _keys(member)}
    return {key for member in value for key in _keys(member)} if isinstance(value, list) else set()


def _mutated(text: str, how: str, at: int, mark: str, tail: str) -> str:
    changed = {
        "insert": lambda: text[:at] + mark + text[at:],
        "lose": lambda: text[:at] + text[at + 1 :],
        "double": lambda: text[:at] + text[at : at + 1] * 2 + text[at + 1 :],
        "swap": lambda: text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :],
        "crlf": lambda: text.replace("\n", "\r\n"),
        "indent": lambda: "\n".join("    " + line for line in text.split("\n")),
        "in quotes": lambda: f'"{text}"',
        "upper": lambda: text[:at] + text[at : at + 3].upper() + text[at + 3 :],
        "broken sibling": lambda: text + tail + text[: len(text) // 2],
        "tail": lambda: text + tail,
        "lose behind": lambda: text[: at + len(text) // 2] + TAILS[at % len(TAILS)],
    }
    return changed[how]()


PLAIN = st.sampled_from(["Oslo", "San Francisco", "a b", "x1", "漢字", "it is so"])
PLAIN_VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.booleans() | st.integers(10, 10_000) | st.sampled_from([0.25, -3.5, 1200.75]) | PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["k1", "k2", "deep"]), inner, max_size=2)
    ),
    max_leaves=4,
)
PLAIN_CALLS = st.tuples(
    st.sampled_from(["get_weather", "write_file"]),
    st.dictionaries(st.sampled_from(["city", "days", "note_2"]), PLAIN_VALUES, max_size=3),
)


@given(PLAIN_CALLS, st.sampled_from(sorted(RENDERINGS)), MUTATIONS, st.data())
def test_a_call_that_is_mutated_outside_its_values_is_that_call_or_none(
    call: tuple[str, dict[str, JSON]], dialect: str, how: str, data: st.DataObject
) -> None:
    name, arguments = call
    text = RENDERINGS[dialect](name, arguments)
    assume(text)
    places = _safe_places(str(text), name, arguments)
    assume(places)
    at, mark = data.draw(st.sampled_from(places)), data.draw(st.sampled_from(MARKS))
    if how in ("swap", "upper"):
        assume({at + 1, at + 2} <= set(places))
    mutated = _mutated(str(text), how, at, mark, data.draw(st.sampled_from(CUTS)))
    said = _said(rescue(mutated, _tools(name, arguments)))
    assert set(said) <= {(name, json.dumps(arguments, sort_keys=True))}, (mutated, said)


NESTED: tuple[str, dict[str, JSON]] = (
    "get_weather",
    {"note_2": {"k1": [1200, "a b"], "deep": {"k2": True}}, "days": 42, "city": "Oslo"},
)
"""A call whose brackets and tags can be wrong in many places."""
PLAINEST: tuple[str, dict[str, JSON]] = ("get_weather", {"city": "Oslo"})


@table_test("dialect", sorted(RENDERINGS))
def test_one_character_that_is_wrong_anywhere_outside_the_values_gives_that_call_or_none(
    dialect: str,
) -> None:
    """Every place of every rendering, not a sample: lost, doubled, swapped, inserted, and cut there."""
    name, arguments = NESTED if RENDERINGS[dialect](*NESTED) else PLAINEST
    text = str(RENDERINGS[dialect](name, arguments))
    tools, said = _tools(name, arguments), json.dumps(arguments, sort_keys=True)
    changed = [*_changed_anywhere(text, name, arguments), *_without_a_sign(text)]
    assert len(changed) > 50
    for wrong in changed:
        assert set(_said(rescue(wrong, tools))) <= {(name, said)}, wrong


def _changed_anywhere(text: str, name: str, arguments: Mapping[str, JSON]) -> Iterator[str]:
    places = set(_safe_places(text, name, arguments))
    for at in places:
        yield text[:at]
        for how, mark in (("lose", ""), ("double", ""), ("insert", "<"), ("insert", "}"), ("insert", '"')):
            yield _mutated(text, how, at, mark, "")
        if {at + 1, at + 2} <= places:
            yield _mutated(text, "swap", at, "", "")


def _without_a_sign(text: str) -> Iterator[str]:
    """Yield the text without each sign of a format, and with each bracket twice, right beside a value, too."""
    for sign in re.finditer(r"""[{}\[\]":'<>()=]|,(?![\w-])""", text):
        yield _mutated(text, "lose", sign.start(), "", "")
        # A bracket more behind a text that no quotes end is the text's: nobody can see it.
        if sign.group() in "{}[]" and not text.endswith("Oslo", 0, sign.start()):
            yield _mutated(text, "double", sign.start(), "", "")


DIALECTS = {"hermes": "hermes", "mistral 11": "mistral", "qwen coder": "qwen-coder", "glm": "glm", "kimi k2": "kimi",
    "harmony": "harmony", "gemma": "gemma", "dsml 4.1": "deepseek", "minimax m2": "minimax", "lfm2": "lfm2",
    "olmo 3": "olmo", "llama 3": "llama", "python": "python", "json": "json", "cohere": "cohere", "jamba": "tool_calls",
    "phi": "functools", "react": "react", "functionary": "functionary"}  # fmt: skip


@given(CALLS, st.sampled_from(sorted(DIALECTS)), st.sampled_from(sorted(set(DIALECTS.values()))))
def test_a_named_dialect_reads_its_own_format_and_never_another_call(
    call: tuple[str, dict[str, JSON]], rendering: str, other: str
) -> None:
    name, arguments = call
    text = RENDERINGS[rendering](name, arguments)
    assume(text)
    own = rescue(str(text), _tools(name, arguments), dialect=DIALECTS[rendering])
    assert _said(own) == [(name, json.dumps(arguments, sort_keys=True))], (text, own)
    _only_this(rescue(str(text), _tools(name, arguments), dialect=other), name, arguments)


@given(CALLS, st.sampled_from(sorted(RENDERINGS)), BEFORE | PROSE)
def test_a_stream_of_any_dialect_is_read_as_the_whole(
    call: tuple[str, dict[str, JSON]], dialect: str, prose: str
) -> None:
    text = RENDERINGS[dialect](*call)
    assume(text)
    tools = _tools(*call)
    stream = RescueStream(tools)
    for piece in re.findall(r"(?s).{1,5}", prose + str(text)):
        stream.feed(piece)
    assert stream.finish() == rescue(prose + str(text), tools)


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
    limits = Limits(max_repaired_tokens=2_000)
    once = rescue(start + unit * 300, limits=limits).steps
    twice = rescue(start + unit * 600, limits=limits).steps
    assert twice <= 2 * once + 200
