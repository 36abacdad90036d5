"""The needle audit: what is planted, what is found again, and that the command prints it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from statek_sim.agent.context.audit import STRATEGIES, audited, replayed
from statek_sim.agent.context.transcripts import PLACES, Talk, planted, read_talks
from statek_sim.agent.context.units import texts_of
from statek_sim.agent.context.wire_check import wire_faults
from statek_sim.cli.app import app
from statek_sim.errors import BadInput
from statek_sim.reporting.context_tables import audit_rows, in_markdown
from statek_sim.values import Message
from tests.context.histories import HEAD, count, tokens, turn, words
from tests.docs.page import DOCS

SHIPPED = Path("statek_sim/agent/context/talks.jsonl")
LONG = Talk(
    id="long",
    messages=(
        *HEAD,
        *(one for number in range(12) for one in turn(number, words(40), text="Next.")),
        {"role": "user", "content": "Only March."},
        *(one for number in range(12, 24) for one in turn(number, words(40), text="Next.")),
        {"role": "assistant", "content": "Done."},
    ),
)


def test_a_needle_is_planted_in_every_place_and_nothing_else_changes() -> None:
    talk = planted(LONG)
    assert {needle.place for needle in talk.needles} == set(PLACES)
    assert len({needle.text for needle in talk.needles}) == len(talk.needles)
    for needle in talk.needles:
        assert any(needle.text in text for text in texts_of(talk.messages[needle.at]))
    without = str(talk.messages)
    for needle in talk.needles:
        without = without.replace(needle.text, "")
    assert "KEY-" not in without
    assert not wire_faults(talk.messages, "anthropic")


def test_without_a_strategy_nothing_is_lost_and_nothing_saved() -> None:
    talk = planted(LONG)
    course = replayed(talk, None, count, 10**6)
    assert (course.lost, course.compactions, course.failed) == ([], 0, None)
    # Prompts of 1, 2, 3 ... exchanges: each is sent whole, and all but its newest exchange is in the cache.
    assert course.prompts == 25
    assert course.hit < course.sent


def test_each_strategy_forgets_what_it_takes_away() -> None:
    found = {one.strategy: one for one in audited([planted(LONG)], count)}
    assert set(found) == set(STRATEGIES)
    for name in ("clear", "summarise", "drop", "tiered"):
        one = found[name]
        assert one.kept["system"] == one.kept["task"] == 1, name
        assert one.kept["user"] == one.planted["user"], name
        assert 0 < one.saved < 1, name
        assert not sum(course.over + course.refused for course in one.courses), name
    clear, drop = found["clear"], found["drop"]
    assert clear.kept["arguments"] == clear.planted["arguments"]
    assert clear.kept["result end"] < clear.planted["result end"]
    assert drop.kept["arguments"] < drop.planted["arguments"]
    assert found["summarise"].kept["result head"] >= drop.kept["result head"]


def test_a_lost_needle_is_told_with_the_prompt_that_missed_it_first() -> None:
    one = audited([planted(LONG)], count, strategies={"drop": STRATEGIES["drop"]})[0]
    (course,) = one.courses
    assert course.lost
    assert all(1 < at <= course.prompts for _, at in course.lost)


def test_a_needle_that_a_file_names_is_looked_for() -> None:
    line = json.dumps({"id": "x", "messages": [*HEAD, *turn(1, "the key is 4711")], "needles": ["4711"]})
    (talk,) = read_talks(line, "x.jsonl")
    assert [(needle.place, needle.at) for needle in talk.needles] == [("given", 3)]
    assert any(needle.place == "given" for needle in planted(talk).needles)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"x:1: not JSON"),
        ("[]", r'x:1: expected an object with "messages"'),
        ('{"messages": []}', r'x:1: expected an object with "messages"'),
        ('{"messages": [1]}', r"x:1: messages: expected objects"),
        ('{"messages": [{"role": "tool", "content": "x"}]}', r"x:1: OpenAI would refuse this conversation"),
        (
            '{"messages": [{"role": "user", "content": "x"}], "needles": ["y"]}',
            r"x:1: needles: no message says 'y'",
        ),
        ("\n", r"x: no conversation"),
    ],
)
def test_a_line_that_is_no_conversation_is_told_with_its_place(line: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        read_talks(line, "x")


def test_the_conversations_that_come_along_need_compaction() -> None:
    talks = read_talks(SHIPPED.read_text(encoding="utf-8"), "talks.jsonl")
    assert len(talks) == 12
    for talk in talks:
        assert not wire_faults(talk.messages, "gemini")
        assert tokens(talk.messages) > 1_000


# -- the command ------------------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_text(json.dumps({"id": "long", "messages": [dict(one) for one in LONG.messages]}) + "\n")
    done = CliRunner().invoke(app, ["context", "audit", str(file), "--json", str(tmp_path / "out.json")])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].split()[:4] == ["strategy", "saved", "cached", "compactions"]
    assert [line.split("  ")[0] for line in lines[1:-1]] == list(STRATEGIES)
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["schema"] == "statek-sim/context-audit@1"
    assert [one["strategy"] for one in written["strategies"]] == list(STRATEGIES)


def test_the_audit_is_the_same_under_every_hash_seed(tmp_path: Path) -> None:
    outs = []
    for seed in ("0", "1"):
        out = tmp_path / f"{seed}.json"
        subprocess.run(
            [sys.executable, "-m", "statek_sim.cli", "context", "audit", "--json", str(out)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        outs.append(out.read_bytes())
    assert outs[0] == outs[1]


def test_a_scenario_is_a_conversation_too() -> None:
    path = "scenarios/agent-context/summaries.yaml"
    done = CliRunner().invoke(app, ["context", "audit", path])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].startswith("10 conversations")


def test_scenarios_of_the_other_engine_are_none() -> None:
    done = CliRunner().invoke(app, ["context", "audit", "scenarios/claims"])
    assert "no conversation in these scenarios" in str(done.exception)


def test_check_tells_what_a_provider_would_refuse(tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    late: list[Message] = [*HEAD, {"role": "system", "content": "A summary."}]
    file.write_text(json.dumps({"id": "late", "messages": late}))
    assert CliRunner().invoke(app, ["context", "check", str(file)]).exit_code == 0
    done = CliRunner().invoke(app, ["context", "check", str(file), "--wire", "gemini"])
    assert done.exit_code == 1
    assert (
        f"{file}:1: late: message 2 is the system's and not the first; gemini has no place for it"
        in done.output
    )


def test_the_page_shows_what_the_audit_says() -> None:
    talks = [planted(talk) for talk in read_talks(SHIPPED.read_text(encoding="utf-8"), "talks.jsonl")]
    assert "\n".join(in_markdown(audit_rows(audited(talks, count)))) in (DOCS / "context.md").read_text(
        "utf-8"
    )
