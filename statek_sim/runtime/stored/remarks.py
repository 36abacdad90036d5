"""Remarks about the store: what becomes of one name of a job, and why, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.runtime.stored.containers import NOTHING, Kept, List

ALIKE: Final = "equals_others_of_its_tool"
"""Marks values that are equal to others than themselves: futures."""

Change = Literal["lost", "changed", "not stored", "refused", "kills"]
"""`lost`: the name keeps what it had, or is unbound. `changed`: another value came back. `not stored`: STATEK took the
new value for equal to the old. `refused`: dbzero's collection lacks what is asked of it. `kills`: storing it ends the
process."""

FORESEEN_RELEASE: Final = "1.4.2"
"""The release of which profiles that keep every value speak."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What the store does to one name, and why."""

    name: str
    change: Change
    reason: str


def took_for_equal(name: str, old: object, value: object) -> Remark:
    """Return what there is to say of a name whose new value STATEK takes for equal to the old one."""
    if isinstance(old, List) and isinstance(value, List):
        why = "dbzero's != says False of two of its lists of different lengths, so STATEK keeps the old one"
        return Remark(name, "lost", f"its new value was not written: {why}")
    if hasattr(old, ALIKE):
        why = (
            "STATEK takes two futures of one tool for equal if their `deps` are, and keeps the old one: give the new "
            "one another name"
        )
        return Remark(name, "lost", f"its new value was not written: {why}")
    why = f"a new {type(value).__name__} that is equal to the old {type(old).__name__} is not written"
    return Remark(name, "not stored", why)


def remark_of(name: str, found: Kept) -> Remark | None:
    """Return what there is to say of a name and what is left of its value, None when it comes back as it was."""
    error = found.error
    if error is None:
        return Remark(name, "changed", found.told) if found.told else None
    change: Change = "lost" if found.value is NOTHING else "changed"
    return Remark(name, change, refused_because(error))


def refused_because(error: Exception) -> str:
    """Return in words why dbzero did not take a value as it was."""
    text = str(error).strip()
    head, _, kind = text.partition("Type unsupported by dbzero: ")
    if not head and kind:
        return f"{kind} cannot be stored by dbzero"
    if isinstance(error, UnicodeEncodeError):
        return "dbzero stores no lone surrogates, the text comes back empty"
    if text == "int too big to convert":
        return "dbzero keeps integers in 64 bits, one that is larger comes back as -1"
    if "negative int to unsigned" in text:
        return "dbzero cannot hash a negative integer in a set"
    if "hash function" in text:
        return "dbzero has no hash for this kind of key, negative integers included"
    if "Lambda" in text or "function attributes" in text:
        return "a function or lambda written by the model cannot be stored by dbzero"
    return f"dbzero refuses it: {text}"


def written_after(name: str, culprit: str) -> Remark:
    """Return what there is to say of a name that STATEK would have written after a `culprit`."""
    return Remark(
        name, "lost", f"it was written after `{culprit}`, which dbzero refused, so STATEK never got to it"
    )
