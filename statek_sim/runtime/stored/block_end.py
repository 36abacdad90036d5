"""What a job's names hold after a block, when STATEK writes them to its store.

STATEK goes through the names in the order of its store, after them those that the block bound (also anew, when it had
deleted them) in its order, and stops at the first value that is refused: what follows is lost with it, without a word
(behaviour 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from statek_sim.runtime.stored.containers import NOTHING, Kept, List, StoreKills, kept
from statek_sim.runtime.stored.hashing import in_store_order
from statek_sim.runtime.stored.remarks import ALIKE, Remark, remark_of, took_for_equal, written_after
from statek_sim.sandbox.llm_repr import StoredCollection


@dataclass(slots=True)
class Crossing:
    """The names as they come back, what there is to say, and the error that STATEK raises after all of it."""

    names: dict[str, object]
    remarks: list[Remark] = field(default_factory=list)
    error: Exception | None = None


def cross(before: Mapping[str, object], after: Mapping[str, object]) -> Crossing:
    """Store what a block left in `after`, in its order; `before` is what was in the store. Raises `StoreKills`."""
    names = dict(before)
    crossing = Crossing(names)
    pending = list(_written(before, after, crossing.remarks))
    for place, name in enumerate(pending):
        found = _kept(name, after[name])
        remark = remark_of(name, found)
        if remark is not None:
            crossing.remarks.append(remark)
        if found.value is not NOTHING:
            names[name] = found.value
        if found.error is not None:
            crossing.error = found.error
            crossing.remarks += [written_after(other, name) for other in pending[place + 1 :]]
            break
    if len(names) != len(before):
        crossing.names = {name: names[name] for name in in_store_order(names)}
    return crossing


def foresee(before: Mapping[str, object], after: Mapping[str, object]) -> list[Remark]:
    """Return what the store would do to the names that a block bound; nothing is changed."""
    bound = [name for name, value in after.items() if before.get(name, NOTHING) is not value]
    remarks: list[Remark] = []
    for place, name in enumerate(bound):
        old = before.get(name)
        if hasattr(old, ALIKE) and not _differs(old, after[name]):
            remarks.append(took_for_equal(name, old, after[name]))
            continue
        try:
            found = kept(after[name])
        except StoreKills as end:
            return [*remarks, Remark(name, "kills", str(end))]
        remark = remark_of(name, found)
        if remark is not None:
            remarks.append(remark)
        if found.error is not None:
            return remarks + [written_after(other, name) for other in bound[place + 1 :]]
    return remarks


def _written(
    before: Mapping[str, object], after: Mapping[str, object], remarks: list[Remark]
) -> Iterator[str]:
    """Yield the names that STATEK writes: new ones, and those with a value that is not equal to the old one."""
    for name, value in after.items():
        old = before.get(name, NOTHING)
        if value is old:
            continue
        if old is NOTHING or _differs(old, value):
            yield name
        elif _loses_by_equality(old, value):
            remarks.append(took_for_equal(name, old, value))


def _differs(old: object, value: object) -> bool:
    try:
        return bool(old != value)
    except Exception:  # noqa: BLE001  # a comparison of the application's objects
        return True


def _loses_by_equality(old: object, value: object) -> bool:
    """Return whether two values that STATEK takes for equal are not the same to the code that reads them."""
    if isinstance(old, List) and isinstance(value, List):
        return len(old) != len(value)
    if isinstance(old, StoredCollection):
        # A plain collection that is equal would come back as what is there.
        return False
    return type(old) is not type(value) or hasattr(old, ALIKE)


def _kept(name: str, value: object) -> Kept:
    try:
        return kept(value)
    except StoreKills as end:
        raise StoreKills(f"`{name}`: {end}") from None
