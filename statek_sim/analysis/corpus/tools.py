"""The tools of the corpus's agent: one that is used and three that are only offered, as agents' tools often are."""

from __future__ import annotations

from typing import Any

from statek_sim.analysis.corpus.texts import text_of
from statek_sim.runtime.tools.declaration import tool


@tool
def look_up(register: str, page: int, **kwargs: Any) -> str:
    """Look up what is on record about a parcel.

    Args:
        register: Name of the register.
        page: Number of the page, from 0.
    """
    return text_of(register).exchange(page).record


@tool
def book_delivery(parcel: str, day: str, slot: str = "morning", **kwargs: Any) -> str:
    """Book another delivery of a parcel.

    Args:
        parcel: The parcel's number.
        day: The day as YYYY-MM-DD.
        slot: morning, afternoon or evening.
    """
    return f"{parcel}: {day}, {slot}"


@tool
def open_claim(parcel: str, amount: float, reason: str, **kwargs: Any) -> str:
    """Open a claim for a parcel that was damaged or lost.

    Args:
        parcel: The parcel's number.
        amount: What the contents cost, in euros.
        reason: What happened, in the customer's words.
    """
    return f"{parcel}: {amount:.2f} EUR, {reason}"


@tool
def change_address(customer: str, address: str, valid_from: str | None = None, **kwargs: Any) -> str:
    """Change the address that future parcels go to.

    Args:
        customer: The customer's number.
        address: Street, number, postal code and town.
        valid_from: First day as YYYY-MM-DD; the next working day if left out.
    """
    return f"{customer}: {address} from {valid_from}"
