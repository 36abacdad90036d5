"""Laws of reading JSON from models: the quick ways read what the thorough ones read, and refuse what they refuse."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from statek_sim.agent.replies.model_reply import read_model_reply
from statek_sim.agent.schema import no_constant, once, read_json, real, whole
from statek_sim.providers.wire.reply import compact
from statek_sim.values import JSON

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**66), 2**66)
    | st.floats()
    | st.text(st.characters(), max_size=6)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
pieces = st.sampled_from(
    [
        '"a"',
        '"',
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "1",
        "-0",
        "1e999",
        "NaN",
        "true",
        "null",
        "\\",
        " ",
        "\n",
        "\x00",
        "é",
    ]
)
arguments = values.map(lambda value: json.dumps({"name": "f", "arguments": value}))
texts = st.builds(json.dumps, values) | st.lists(pieces, max_size=14).map("".join)


def outcome(read: object, text: str | bytes) -> str:
    """Return what comes of reading a text, in words: values that are equal may differ in type."""
    assert callable(read)
    try:
        return repr(read(text))
    except (ValueError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"


@given(texts)
@example('{"a": "x", "a": "y"}')
@example('{"a": 1, "a": 1}')
@example('{"a": 99999999999999999999999}')
@example('{"a": "}", "b": 2} ')
def test_flat_arguments_are_read_as_strictly_as_any(text: str) -> None:
    strict = json.JSONDecoder(
        object_pairs_hook=once, parse_int=whole, parse_float=real, parse_constant=no_constant
    )
    assert outcome(read_json, text) == outcome(strict.decode, text)


@given(arguments | texts)
@example('"\\ud800"')
@example('{"name": "f", "arguments": " "}')
def test_an_answer_is_read_as_the_standard_library_reads_it(text: str) -> None:
    body = f'{{"choices": [{{"message": {{"tool_calls": [{{"id": "c", "function": {text}}}]}}}}]}}'.encode()

    def arguments(body: bytes) -> JSON:
        function = json.loads(body)["choices"][0]["message"]["tool_calls"][0]["function"]
        told = function.get("arguments") if isinstance(function, dict) else None
        if told is None or (isinstance(told, str) and not told.strip()):
            return "{}"
        return told if isinstance(told, str) else compact(told)

    def read(body: bytes) -> JSON:
        reply = read_model_reply(body, "openai")
        if reply.unreadable is not None:
            raise ValueError(reply.unreadable)
        return reply.calls[0].arguments

    theirs, ours = outcome(arguments, body), outcome(read, body)
    assert ours == theirs or theirs.removeprefix("ValueError: ") in ours
