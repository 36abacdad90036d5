"""STATEK's price files, and the cost of calls based on these files (behaviour 5).

STATEK reads every `.csv` and `.txt` under STATEK_MODEL_INFO_DIR with the columns PROVIDER, MODEL, MODEL_FAMILY,
INPUT_PRICE_PER_M, INPUT_PRICE_PER_CACHED_M, OUTPUT_PRICE_PER_M, and silently skips unusable rows. This module reads the
same rows, and reports each skipped row with its line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.input_files import why_unreadable

SUFFIXES: Final = (".csv", ".txt")
COLUMNS: Final = (
    "PROVIDER",
    "MODEL",
    "MODEL_FAMILY",
    "INPUT_PRICE_PER_M",
    "INPUT_PRICE_PER_CACHED_M",
    "OUTPUT_PRICE_PER_M",
)
CACHED_APART: Final = frozenset({"ANTHROPIC", "CLAUDE", "CLAUDEAI", "CLAUDE_AI"})
"""Providers whose reported prompt tokens exclude cached tokens; other providers include them."""

_FAMILY_COUNTS: Final = frozenset({"OPENROUTER"})
"""Providers whose prices STATEK also looks up by model family."""

_MILLION: Final = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A row in a price file: prices per million tokens. Without `cached`, cached tokens cost the same as others."""

    provider: str
    model: str
    family: str | None
    input: Decimal
    cached: Decimal | None
    output: Decimal
    place: str

    @property
    def tags(self) -> frozenset[str]:
        """The row's lookup key in STATEK: provider, model and family in upper case, without white space."""
        return frozenset(map(_tag, filter(None, (self.provider, self.model, self.family))))

    @property
    def figures(self) -> tuple[Decimal, Decimal | None, Decimal]:
        """The three prices; STATEK treats rows with equal prices as one."""
        return self.input, self.cached, self.output


@dataclass(frozen=True, slots=True)
class PriceList:
    """The usable rows from all price files, in order, and a message for each row that STATEK skips."""

    prices: tuple[Price, ...] = ()
    problems: tuple[str, ...] = ()
    folder: Path | None = None
    """The folder that contains the price files."""

    def find(self, provider: str, model: str) -> tuple[Price, ...]:
        """Return the prices that STATEK may use for a model, given the provider's name for the model.

        A row matches if it contains all names that STATEK looks up, even if it also contains a family. If several
        prices match, it is undefined which price STATEK uses.
        """
        family = model.partition("/")[0] if "/" in model and provider.upper() in _FAMILY_COUNTS else None
        wanted = frozenset(map(_tag, filter(None, (provider, model, family))))
        fitting = [price for price in self.prices if wanted <= price.tags]
        return tuple({price.figures: price for price in reversed(fitting)}.values())[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The tokens that a provider reported for one call, or the totals for several calls."""

    prompt: int
    completion: int
    cached: int


def load_prices(folder: Path) -> PriceList:
    """Load the prices from all price files in `folder` and its subfolders.

    Raises `BadInput` if there are no prices, or if a file would prevent STATEK from starting.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: expected a folder with price files (*.csv, *.txt)")
    prices: list[Price] = []
    problems: list[str] = []
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    if not files:
        raise BadInput(f"{folder}: no price files; expected *.csv or *.txt")
    for path in files:
        for row in _rows(path):
            (prices if isinstance(row, Price) else problems).append(row)  # type: ignore[arg-type]  # by its kind
    if not prices:
        why = problems[0] if problems else f"{files[0]}: no rows"
        raise BadInput(f"{folder}: no prices in its files; {why}")
    return PriceList(tuple(prices), tuple(problems), folder)


def statek_cost(price: Price, tokens: Tokens) -> Decimal:
    """Return STATEK's `total_cost`, which subtracts cached tokens from the prompt for every provider."""
    return _cost(price, tokens.prompt - tokens.cached, tokens)


def provider_cost(price: Price, tokens: Tokens, provider: str) -> Decimal:
    """Return the cost of the same tokens by the provider's rules, without cache writes, which are not reported."""
    apart = provider.upper() in CACHED_APART
    return _cost(price, tokens.prompt if apart else tokens.prompt - tokens.cached, tokens)


def cost_problems(price: Price, tokens: Tokens, provider: str) -> Iterator[str]:
    """Yield a sentence for each problem with the cost that STATEK computes."""
    figures = [figure for figure in price.figures if figure is not None]
    if any(not figure.is_finite() or figure < 0 for figure in figures):
        yield f"a price is not a valid amount ({price.place})"
        return
    cost = statek_cost(price, tokens)
    if cost < 0:
        yield f"negative cost {cost:f}"
    if provider.upper() in CACHED_APART:
        if tokens.cached:
            yield (
                f"{provider} excludes the {tokens.cached:,} cached tokens from its {tokens.prompt:,} prompt tokens; "
                "STATEK subtracts them again"
            )
    elif tokens.cached > tokens.prompt:
        yield f"{tokens.cached:,} cached tokens exceed the {tokens.prompt:,} prompt tokens"
    if price.cached is not None and price.cached > price.input:
        yield f"cached tokens cost more than other tokens ({price.place})"


def _cost(price: Price, uncached: int, tokens: Tokens) -> Decimal:
    cached = price.input if price.cached is None else price.cached
    return (uncached * price.input + tokens.cached * cached + tokens.completion * price.output) / _MILLION


def _rows(path: Path) -> Iterator[Price | str]:
    """Yield a file's rows: a `Price`, or the message `path:line: problem` for a row that STATEK skips."""
    try:
        with io.TextIOWrapper(path.open("rb"), newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield _row(f"{path}:{reader.line_num}", row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error if isinstance(error, csv.Error) else why_unreadable(error, path)
        raise BadInput(f"{path}: STATEK fails to start with this price file: {why}") from error


def _row(place: str, row: Mapping[str, str | None]) -> Price | str:
    missing = [column for column in COLUMNS if column not in row]
    if missing:
        return f"{place}: skipped, no column {', '.join(missing)}"
    if any(row[column] is None for column in COLUMNS):
        # STATEK calls `.strip()` on the missing cell, and the error is not caught.
        raise BadInput(f"{place}: STATEK fails to start with this row: fewer cells than columns")
    cells = {column: str(row[column]).strip() for column in COLUMNS}
    try:
        input_price, cached, output = (_decimal(cells[column]) for column in COLUMNS[3:])
    except InvalidOperation:
        return f"{place}: skipped, a price is not a number"
    if input_price is None or output is None:
        return f"{place}: skipped, no price for input or output"
    return Price(
        provider=cells["PROVIDER"],
        model=cells["MODEL"],
        family=cells["MODEL_FAMILY"] or None,
        input=input_price,
        cached=cached,
        output=output,
        place=place,
    )


def _decimal(cell: str) -> Decimal | None:
    return Decimal(cell) if cell else None


def _tag(name: str) -> str:
    return "".join(name.split()).upper()


def summed(tokens: Iterable[Tokens]) -> Tokens:
    """Return the total tokens for several calls."""
    found = tuple(tokens)
    return Tokens(
        prompt=sum(price.prompt for price in found),
        completion=sum(price.completion for price in found),
        cached=sum(price.cached for price in found),
    )
