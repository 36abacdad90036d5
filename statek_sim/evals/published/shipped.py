"""The shipped profiles: which published model each is, and how it writes calls."""

from __future__ import annotations

from typing import Final, NamedTuple

from statek_sim.evals.models.profile import Profile
from statek_sim.evals.published.fit import fit_profile
from statek_sim.evals.published.forge import published_of


class _Shipped(NamedTuple):
    model: str
    title: str
    dialect: str


SHIPPED: Final = {
    "gemma-4-31b-it": _Shipped("gemma-4-31B-it-Q4_K_M", "a strong local model of 31B", "gemma"),
    "lfm2.5-8b-a1b": _Shipped(
        "LFM2.5-8B-A1B-Q4_K_M", "a weak local model, 8B of which 1B are active", "lfm2"
    ),
    "ministral-3-8b-instruct": _Shipped(
        "Ministral-3-8B-Instruct-2512-Q8_0",
        "a local model of 8B that fails half of its bare runs",
        "mistral 11",
    ),
}
"""Shipped profiles by name. The dialects are the families' own."""

HEAD: Final = (
    "A simulated weak model. Written by `statek-sim evals fit --write FOLDER` from the counts in",
    "statek_sim/evals/published/forge.json; what the counts do not tell is assumed, and labelled so.",
)


def refitted(name: str) -> Profile:
    """Return a shipped profile as the published counts give it now."""
    entry = SHIPPED[name]
    return fit_profile(published_of(entry.model), name=name, title=entry.title, dialect=entry.dialect)
