"""The corpus: the same dialogue in many kinds of text, and the table it makes."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest

from statek_sim.analysis.corpus_model import (
    CELLS,
    KINDS,
    PARCEL,
    Cell,
    CorpusTable,
    corpus_scenarios,
    corpus_table,
    text_of,
)
from statek_sim.analysis.run_usage import analyse
from statek_sim.reporting.usage import corpus_lines, corpus_markdown
from statek_sim.suite.run import run_one
from statek_sim.usage.tokenizers import tokenizer_for_model
from tests.tables import table_test

SCRIPTS = {
    "russian": "CYRILLIC",
    "chinese": "CJK",
    "japanese": "HIRAGANA",
    "korean": "HANGUL",
    "thai": "THAI",
    "arabic": "ARABIC",
    "hindi": "DEVANAGARI",
}


@pytest.fixture(scope="module")
def table() -> CorpusTable:
    return corpus_table(analyse(run_one(scenario, "docs") for scenario in corpus_scenarios()))


@table_test("key", KINDS)
def test_every_text_has_the_same_five_exchanges(key: str) -> None:
    text = text_of(key)
    assert len(text.exchanges) == 5
    assert all(part.strip() for one in text.exchanges for part in (one.ask, one.record, one.answer))
    assert len({one.record for one in text.exchanges}) == 5
    assert PARCEL in text.exchanges[0].ask
    assert PARCEL not in text.exchange(0).ask


@table_test(("key", "script"), SCRIPTS.items())
def test_languages_are_written_in_their_script(key: str, script: str) -> None:
    for one in text_of(key).exchanges:
        for part in (one.ask, one.record, one.answer):
            assert any(script in unicodedata.name(character, "") for character in part)


def test_json_results_are_json() -> None:
    assert all(len(json.loads(one.record)) >= 12 for one in text_of("json").exchanges)


def test_later_rounds_are_about_other_parcels() -> None:
    text = text_of("english")
    assert text.exchange(5).ask == text.exchange(0).ask.replace("PL-4401", "PL-4402")


def test_there_is_a_scenario_for_every_text_and_cell() -> None:
    scenarios = corpus_scenarios()
    assert len({scenario.id for scenario in scenarios}) == len(scenarios) == len(KINDS) * len(CELLS) == 90


def test_dialogues_have_one_call_a_turn_and_two_with_a_tool(table: CorpusTable) -> None:
    for row in table.rows:
        assert [row.uses[cell].calls for cell in CELLS] == [1, 5, 20, 2, 10, 40]


def test_tool_definitions_are_sent_with_every_call_of_the_cells_with_tools(table: CorpusTable) -> None:
    for row in table.rows:
        assert [row.uses[cell].parts.tools_tokens > 0 for cell in CELLS] == [cell.tools for cell in CELLS]
        assert (
            row.uses[Cell(5, tools=True)].parts.tools_bytes
            == 10 * row.uses[Cell(1, tools=True)].parts.tools_bytes // 2
        )


def test_a_cell_is_the_ratio_of_the_bytes_and_the_tokens_that_were_sent(table: CorpusTable) -> None:
    # One turn without tools, put together by hand.
    text = text_of("chinese")
    one = text.exchange(0)
    messages = [
        {"role": "system", "content": text.prompt},
        {"role": "user", "content": f"{one.ask}\n\n{one.record}"},
    ]
    (row,) = (row for row in table.rows if row.key == "chinese")
    use = row.uses[Cell(1, tools=False)]
    count = tokenizer_for_model("gpt-4o").tokenizer.count
    prompt = sum(3 + count(said["role"]) + count(said["content"]) for said in messages) + 3
    assert use.bytes_sent == len(json.dumps({"model": "gpt-4o", "messages": messages}))
    assert use.measured_tokens == prompt + count(one.answer)
    assert row.ratio(Cell(1, tools=False)) == (
        (use.bytes_sent + use.bytes_received) // 4 / (prompt + count(one.answer))
    )


def test_escapes_make_the_estimate_too_high_and_numbers_make_it_too_low(table: CorpusTable) -> None:
    longest = {row.key: row.ratio(Cell(20, tools=False)) for row in table.rows}
    assert all(longest[key] > 1.5 for key in SCRIPTS)
    assert all(longest[key] < 0.9 for key in ("json", "base64", "long-identifiers"))


def test_the_tables_fit_80_columns_and_keep_every_name(table: CorpusTable) -> None:
    lines = [line.plain for line in corpus_lines(table, width=80)]
    assert max(map(len, lines)) <= 80
    for row in table.rows:
        assert sum(line.startswith(row.name) for line in lines) == 2


def test_markdown_has_a_row_for_every_text_in_both_tables(table: CorpusTable) -> None:
    rows = re.findall(r"^\| (.*?) \|", corpus_markdown(table), flags=re.MULTILINE)
    assert [rows.count(row.name) for row in table.rows] == [2] * len(KINDS)
