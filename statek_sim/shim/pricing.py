"""`statek.model_pricing`: prices that an application sets, and what jobs cost by them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from statek_sim.shim.memo import memo
from statek_sim.shim.queries import find, tags

_MILLION = Decimal(1_000_000)


@memo
@dataclass(eq=False)
class ModelPricing:
    """Prices per million tokens: not cached, cached, and written by the model."""

    input_price_per_M: Decimal | None = None  # noqa: N815  # STATEK's own names
    input_price_per_cached_M: Decimal | None = None  # noqa: N815
    output_price_per_M: Decimal | None = None  # noqa: N815

    @property
    def is_valid(self) -> bool:
        """Whether the two prices are there that a cost needs."""
        return self.input_price_per_M is not None and self.output_price_per_M is not None

    def cost_of(self, usage: Any) -> float | None:
        """Return what tokens cost; without prices, or without tokens, what the provider reported (behaviour 5)."""
        plain, written = self.input_price_per_M, self.output_price_per_M
        if plain is None or written is None or usage.total_input_tokens + usage.total_output_tokens <= 0:
            reported: float | None = usage.total_reported_cost
            return reported
        cached = plain if self.input_price_per_cached_M is None else self.input_price_per_cached_M
        fresh = usage.total_input_tokens - usage.total_cached_tokens
        read = Decimal(fresh) * plain + Decimal(usage.total_cached_tokens) * cached
        return float((read + Decimal(usage.total_output_tokens) * written) / _MILLION)


def get_model_pricing(
    provider: str,
    model: str,
    model_family: str | None = None,
    no_create: bool = False,
) -> Any:
    """Return the prices of a model; where there are none, make an empty entry, or return None with `no_create`."""
    known = next(iter(find(ModelPricing, *_tags(provider, model, model_family))), None)
    return known if known is not None or no_create else _made(ModelPricing(), provider, model, model_family)


def set_model_pricing(
    provider: str,
    model: str,
    input_price_per_M: Decimal,  # noqa: N803  # STATEK's own names
    output_price_per_M: Decimal,  # noqa: N803
    input_price_per_cached_M: Decimal | None = None,  # noqa: N803
    model_family: str | None = None,
) -> ModelPricing:
    """Set the prices of a model; other prices than those it has make a second entry, as in STATEK."""
    wanted = (input_price_per_M, input_price_per_cached_M, output_price_per_M)
    known: ModelPricing | None = get_model_pricing(provider, model, model_family, no_create=True)
    if known is not None:
        if not known.is_valid:
            known.input_price_per_M, known.input_price_per_cached_M, known.output_price_per_M = wanted
        if (known.input_price_per_M, known.input_price_per_cached_M, known.output_price_per_M) == wanted:
            return known
    return _made(ModelPricing(*wanted), provider, model, model_family)


def _made(pricing: ModelPricing, provider: str, model: str, family: str | None) -> ModelPricing:
    tags(pricing).add(*_tags(provider, model, family), "USAGE")
    return pricing


def _tags(provider: str, model: str, family: str | None) -> list[str]:
    return ["".join(part.split()).upper() for part in (provider, model, family) if part is not None]
