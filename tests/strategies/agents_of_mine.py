"""A stranger's agent: tools with type hints, one that pays again when its worker dies, and that rule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from statek_sim import tool
from statek_sim.explore.variation import Variation
from statek_sim.trace import ToolReturned


def plain(text: str, times: int = 1, *, when: date | None = None) -> str:
    """Return something."""
    return f"{text}{times}{when}"


def by_place(number: int, share: float, /, names: list[str]) -> str:
    """Return something."""
    return f"{number}{share}{names}"


def unhinted(text, times: int = 1):  # type: ignore[no-untyped-def]  # what it is about
    """Return something."""
    return text * times


def strange(call: Callable[..., int], /, other: Never) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Has a hint that names nothing."""


@tool
def refund(amount: int, **kwargs: object) -> str:
    """Pay back.

    Args:
        amount: cents
    """
    return f"paid {amount}"


def pays_as_often_as_undisturbed(run: Variation) -> str | None:
    """Return what is wrong with a run, None when nothing is."""
    paid = sum(isinstance(event, ToolReturned) and event.name == "refund" for event in run.events)
    before = (
        paid
        if run.base is None
        else sum(isinstance(event, ToolReturned) and event.name == "refund" for event in run.base.events)
    )
    return f"paid {paid} times, undisturbed {before} times" if paid > before else None
