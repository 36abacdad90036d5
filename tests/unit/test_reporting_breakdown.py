"""The parts of a run's bytes and tokens add up to its usage, or there are none."""

from __future__ import annotations

import json
from dataclasses import replace

from statek_sim.reporting.estimate_error import Breakdown, Part, break_down
from statek_sim.usage.messages import tools_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from tests.tables import table_test
from tests.unit.reporting_samples import Talk, chinese, digits, english, result, said, tool_spec, tooled


def _parts(*talks: Talk) -> Breakdown:
    found = break_down(result("suite/scenario", *talks).record)
    assert found is not None
    return found


@table_test("talk", [english(5), chinese(), digits(), tooled()])
def test_the_parts_add_up_to_the_usage(talk: Talk) -> None:
    parts = _parts(talk)
    all_parts = (parts.tools, parts.framing, parts.escapes, parts.text, parts.replies)
    assert parts.bytes == talk.totals.bytes_sent + talk.totals.bytes_received
    assert sum(part.tokens for part in all_parts) == talk.totals.measured_tokens
    assert sum(part.excess for part in all_parts) == parts.bytes / 4 - talk.totals.measured_tokens


@table_test(
    ("text", "characters", "extra"),
    [
        ("plain", 0, 0),
        ("ż", 1, 6 - 2),
        ("好", 1, 6 - 3),
        ("😀", 1, 12 - 4),
        ("\ud800", 1, 6 - 3),
        ("\n\x7f", 0, 0),
    ],
)
def test_escapes_are_what_ascii_takes_beyond_utf8(text: str, characters: int, extra: int) -> None:
    parts = _parts(Talk().turn(said("user", text)))
    assert (parts.non_ascii, parts.escapes) == (characters, Part(extra, 0))


def test_text_is_the_contents_in_utf8() -> None:
    parts = _parts(Talk().turn(said("system", "hello world"), said("user", "ż 1,2")))
    assert parts.text == Part(len("hello world") + len("ż 1,2".encode()), 2 + 5)
    assert (parts.characters, parts.dense) == (16, 3)


def test_tools_are_what_the_request_holds_beyond_messages_and_model() -> None:
    specs = [tool_spec("fetch_next_item"), tool_spec("complete_item")]
    talk = Talk(tools=specs).turn(said("user", "go")).turn(said("user", "on"))
    once = len(f', "tools": {json.dumps(specs)}')
    counted = tools_tokens(specs, tokenizer_for_model("gpt-4o").tokenizer)
    assert _parts(talk).tools == Part(2 * once, 2 * counted)


def test_history_is_resent_when_an_answered_request_carried_it_before() -> None:
    first, second = said("user", "one"), said("user", "two")
    parts = _parts(Talk().turn(first).turn(second))
    assert (parts.requests, parts.messages) == (2, 3)
    assert parts.resent_bytes == len(json.dumps(first))
    assert parts.message_bytes == 2 * len(json.dumps(first)) + len(json.dumps(second))


def test_a_request_without_an_answer_costs_nothing() -> None:
    talk = Talk()
    talk.ask(said("user", "lost"))
    talk.turn(kept=1)
    assert (_parts(talk).requests, _parts(talk).resent_bytes) == (1, 0)


def test_messages_that_a_later_request_does_not_keep_are_forgotten() -> None:
    talk = Talk().turn(said("user", "one"), said("user", "two")).turn(said("user", "three"), kept=1)
    assert _parts(talk).messages == 4


def test_jobs_are_followed_apart() -> None:
    talks = english(2), english(3, "second")
    assert _parts(*talks).messages == sum(_parts(talk).messages for talk in talks)


def test_there_are_no_parts_without_events() -> None:
    record = result("suite/scenario", english()).record
    assert break_down(replace(record, events=())) is None


def test_there_are_no_parts_when_another_tokenizer_measured_the_run() -> None:
    record = result("suite/scenario", english()).record
    assert break_down(replace(record, usage=replace(record.usage, tokenizer="mine"))) is None


def test_there_are_no_parts_when_the_events_tell_other_sizes() -> None:
    record = result("suite/scenario", english()).record
    assert break_down(replace(record, usage=replace(record.usage, bytes_sent=1))) is None
    assert break_down(replace(record, usage=replace(record.usage, measured_tokens=1))) is None


def test_there_are_no_parts_when_a_job_changes_to_a_model_with_another_tokenizer() -> None:
    talk = english(2)
    talk.model = "gpt-4"
    talk.turn(said("user", "go on"))
    assert break_down(result("suite/scenario", talk).record) is None
