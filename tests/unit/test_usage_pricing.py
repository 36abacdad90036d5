"""STATEK's price files: which rows count, what calls cost by them, and what is wrong with such a cost."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from statek_sim.errors import BadInput
from statek_sim.usage.pricing import (
    PriceList,
    Tokens,
    cost_problems,
    load_prices,
    provider_cost,
    statek_cost,
)
from tests.says import says

HEAD = "PROVIDER,MODEL,MODEL_FAMILY,INPUT_PRICE_PER_M,INPUT_PRICE_PER_CACHED_M,OUTPUT_PRICE_PER_M\n"


def _prices(folder: Path, *rows: str) -> PriceList:
    (folder / "prices.csv").write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return load_prices(folder)


def test_a_price_is_found_by_provider_and_model_in_any_case_and_spacing(tmp_path: Path) -> None:
    found = _prices(tmp_path, "Open AI,gpt-4o,,2.5,1.25,10").find("OPENAI", "GPT-4o")
    assert [price.figures for price in found] == [(Decimal("2.5"), Decimal("1.25"), Decimal(10))]


def test_openrouter_prices_need_the_family_and_the_model_with_it(tmp_path: Path) -> None:
    prices = _prices(tmp_path, "OPENROUTER,openai/gpt-4o,openai,1,,2", "OPENROUTER,gpt-4o-mini,openai,3,,4")
    assert [price.input for price in prices.find("OPENROUTER", "openai/gpt-4o")] == [1]
    assert prices.find("OPENROUTER", "openai/gpt-4o-mini") == ()


def test_rows_with_different_prices_for_one_model_are_all_found(tmp_path: Path) -> None:
    rows = ("OPENAI,m,,1,,2", "OPENAI,m,,1,,2", "OPENAI,m,,5,,6")
    assert [price.input for price in _prices(tmp_path, *rows).find("OPENAI", "m")] == [1, 5]


def test_rows_that_statek_skips_are_told_with_their_place(tmp_path: Path) -> None:
    prices = _prices(tmp_path, "OPENAI,a,,,,2", "OPENAI,b,,cheap,,2", "OPENAI,c,,1,,2")
    (tmp_path / "notes.txt").write_text("just\nsome words\n")
    prices = load_prices(tmp_path)
    assert [price.model for price in prices.prices] == ["c"]
    columns, missing, wrong = prices.problems
    names = "PROVIDER, MODEL, MODEL_FAMILY, INPUT_PRICE_PER_M, INPUT_PRICE_PER_CACHED_M, OUTPUT_PRICE_PER_M"
    assert says(columns, f"{tmp_path}/notes.txt:2", "skipped", "no column", names)
    assert says(missing, f"{tmp_path}/prices.csv:2", "skipped", "no price", "input", "output")
    assert says(wrong, f"{tmp_path}/prices.csv:3", "skipped", "price", "not a number")


def test_a_row_with_too_few_cells_is_bad_input_because_statek_cannot_start(tmp_path: Path) -> None:
    message = re.escape(
        f"{tmp_path}/prices.csv:2: STATEK fails to start with this row: fewer cells than columns"
    )
    with pytest.raises(BadInput, match=f"^{message}$"):
        _prices(tmp_path, "OPENAI,a,,1")


def test_prices_come_from_a_folder(tmp_path: Path) -> None:
    message = re.escape(f"{tmp_path}/none: expected a folder with price files (*.csv, *.txt)")
    with pytest.raises(BadInput, match=f"^{message}$"):
        load_prices(tmp_path / "none")


def test_a_file_that_is_no_text_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xff")
    message = "a.csv: STATEK fails to start with this price file: cannot be read: byte 0xff at 0 is not UTF-8"
    with pytest.raises(BadInput, match=f"^{tmp_path}/{message}$"):
        load_prices(tmp_path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "a.csv: no rows"),
        ("PROVIDER,MODEL\n", "a.csv: no rows"),
        ("a,b\n1,2\n", "a.csv:2: skipped, no column PROVIDER, "),
    ],
)
def test_a_folder_without_a_price_is_told_before_anything_runs(
    tmp_path: Path, content: str, why: str
) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(BadInput, match=f"^{tmp_path}: no prices in its files; {tmp_path}/{why}"):
        load_prices(tmp_path)


def test_cached_tokens_cost_their_own_price_and_are_part_of_the_prompt(tmp_path: Path) -> None:
    (price,) = _prices(tmp_path, "OPENAI,m,,3,0.3,15").prices
    tokens = Tokens(prompt=1000, cached=400, completion=10)
    assert statek_cost(price, tokens) == Decimal("0.00207")
    assert provider_cost(price, tokens, "OPENAI") == Decimal("0.00207")
    assert list(cost_problems(price, tokens, "OPENAI")) == []


def test_without_a_price_for_cached_tokens_they_cost_what_others_do(tmp_path: Path) -> None:
    (price,) = _prices(tmp_path, "OPENAI,m,,3,,15").prices
    assert statek_cost(price, Tokens(prompt=1000, cached=400, completion=0)) == Decimal("0.003")


def test_a_provider_that_counts_cached_tokens_apart_gets_a_negative_cost_from_statek(tmp_path: Path) -> None:
    # The figures that the released package was run with: -0.002631.
    (price,) = _prices(tmp_path, "CLAUDEAI,claude,,3,0.3,15").prices
    tokens = Tokens(prompt=3, cached=1000, completion=4)
    assert statek_cost(price, tokens) == Decimal("-0.002631")
    assert provider_cost(price, tokens, "CLAUDEAI") == Decimal("0.000369")
    negative, subtracted = cost_problems(price, tokens, "CLAUDEAI")
    assert says(negative, "negative cost", "-0.002631")
    assert says(subtracted, "CLAUDEAI", "1,000 cached", "3 prompt tokens", "STATEK subtracts")


def test_more_cached_than_prompt_tokens_are_impossible_elsewhere(tmp_path: Path) -> None:
    (price,) = _prices(tmp_path, "OPENAI,m,,3,4,15").prices
    many, dear = cost_problems(price, Tokens(prompt=3, cached=5, completion=4), "OPENAI")
    assert says(many, "5 cached", "3 prompt tokens")
    assert says(dear, "cached tokens cost more", f"{tmp_path}/prices.csv:2")


@pytest.mark.parametrize("figure", ["-1", "NaN", "Infinity"])
def test_a_price_that_is_no_amount_is_told(tmp_path: Path, figure: str) -> None:
    (price,) = _prices(tmp_path, f"OPENAI,m,,{figure},,15").prices
    [problem] = cost_problems(price, Tokens(prompt=3, cached=0, completion=4), "OPENAI")
    assert says(problem, "price", "not a valid amount", f"{tmp_path}/prices.csv:2")
