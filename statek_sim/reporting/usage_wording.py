"""Sentences and figures that the usage report has in every form."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from statek_sim.reporting.numbers import NOTHING

ESTIMATE: Final = (
    "estimate: (bytes sent + bytes received) // 4, as the harness counts; measured: by a tokenizer"
)
CHARACTERS: Final = "chars//4: the rule of thumb, over all texts, tool definitions and replies"
ONCE: Final = "without history: each message only the first time, bytes // 4"
NO_REPORT: Final = "*: the provider said nothing about {missing}"
PROXY: Final = "proxy: measured with a stand-in, the model's own tokenizer is not known"

_SMALLEST: Final = Decimal("0.000001")


def money(amount: Decimal | None) -> str:
    """Return an amount without a currency, which price files do not say: `0.0123`, `-0.002631`, `12.50`."""
    if amount is None:
        return NOTHING
    if amount == 0 or abs(amount) >= 10:
        return f"{amount:,.2f}"
    if abs(amount) < _SMALLEST:
        return f"{amount:.1e}"
    return f"{amount:,.6f}".rstrip("0")
