"""Rescue parsing where the model's format is known: no other is read, and bare JSON only where a reply begins."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from statek_sim.agent.rescue import HINTS, Reason, RescueStream, rescue
from statek_sim.cli.app import app
from statek_sim.errors import BadInput

CALL = '{"name": "f", "arguments": {"a": 1}}'


def _names(text: str, dialect: str | None) -> list[str]:
    return [call.name for call in rescue(text, dialect=dialect).calls]


def test_a_format_that_is_not_the_models_is_refused_with_its_reason() -> None:
    result = rescue('[TOOL_CALLS]f[ARGS]{"a": 1} and so on', dialect="harmony")
    assert result.calls == ()
    assert [(refusal.reason, refusal.why) for refusal in result.refused] == [
        (Reason.DIALECT, "the call is not written as 'harmony' writes one")
    ]


@pytest.mark.parametrize("before", ["", "\n", "<think>hm</think>\n", "hm</think>", CALL + ", "])
def test_bare_json_counts_where_the_reply_begins(before: str) -> None:
    assert _names(before + CALL, "hermes")[-1:] == ["f"]


@pytest.mark.parametrize("before", ["It is ", '{"data": 1} ', "[1] "])
def test_bare_json_behind_words_is_none_where_the_format_has_a_token(before: str) -> None:
    assert _names(before + CALL, None) == ["f"]
    assert _names(before + CALL, "hermes") == []
    assert _names(before + CALL, "llama") == ["f"]
    assert _names(f"{before}<tool_call>{CALL}</tool_call>", "hermes") == ["f"]


def test_python_counts_anywhere_for_a_model_that_writes_it() -> None:
    text = "Hey yo! [f(a=1), g(b=2)] Hey yo"
    assert (_names(text, None), _names(text, "python")) == ([], ["f", "g"])
    assert _names("f(a=1)\ng()", "python") == ["f", "g"]


def test_nothing_inside_what_is_not_expected_is_read_again() -> None:
    inner = json.dumps({"name": "write", "arguments": {"text": f"<tool_call>{CALL}</tool_call>"}})
    assert _names("Look: " + inner, "hermes") == []


def test_a_stream_takes_the_dialect_too() -> None:
    stream = RescueStream(dialect="hermes")
    for piece in ("It is ", CALL):
        stream.feed(piece)
    assert stream.finish().calls == ()


def test_a_dialect_that_is_not_known_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"^no dialect is called 'hermse': .*Did you mean 'hermes'\?$"):
        rescue("", dialect="hermse")
    assert "hermes" in HINTS


def test_the_command_takes_a_dialect() -> None:
    ran = CliRunner().invoke(app, ["rescue", "--dialect", "hermes"], input=f"It is {CALL}")
    assert json.loads(ran.output)["refused"][0]["reason"] == "dialect"
