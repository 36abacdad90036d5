"""Stores a job's variables when a block ends, as STATEK does, and reports losses as remarks.

STATEK writes existing names in store order, then the names that the block bound (or deleted and bound again)
in the block's order. It stops at the first rejected value, so all later values are silently lost (behaviour
3). Under profiles without dbzero's collections, `predict_refusals` predicts from the code which operations
would fail in STATEK.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from statek_sim.runtime.stored.containers import NOTHING, Dict, Kept, List, Set, StoreKills, Tuple, kept
from statek_sim.runtime.stored.ordering import in_store_order
from statek_sim.sandbox.llm_repr import StoredCollection

ALIKE: Final = "equals_others_of_its_tool"
"""Name of the attribute that marks futures, two of which may be equal in STATEK although they differ."""

Change = Literal["lost", "changed", "not stored", "refused", "kills"]
"""`lost`: the name keeps its old value or stays unbound. `changed`: dbzero reads back a different value.
`not stored`: STATEK treats the new value as equal to the old one. `refused`: dbzero's collection lacks
the operation. `kills`: storing the value ends the process.
"""

PREDICTED_RELEASE: Final = "1.4.2"
"""The release to which remarks refer under profiles that store every value unchanged."""


@dataclass(frozen=True, slots=True)
class Remark:
    """How storing affects the variable `name`, and a description of the reason."""

    name: str
    change: Change
    reason: str


def took_for_equal(name: str, old: object, value: object) -> Remark:
    """Return the remark for a name whose new value STATEK does not write because it equals the old value."""
    if isinstance(old, List) and isinstance(value, List):
        why = "dbzero's != returns False for two lists of different lengths, so STATEK keeps the old one"
        return Remark(name, "lost", f"its new value was not written: {why}")
    if hasattr(old, ALIKE):
        why = (
            "STATEK treats two futures from one tool as equal if their `deps` are, and keeps the old one: use "
            "another name for the new one"
        )
        return Remark(name, "lost", f"its new value was not written: {why}")
    why = f"a new {type(value).__name__} that is equal to the old {type(old).__name__} is not written"
    return Remark(name, "not stored", why)


def remark_of(name: str, found: Kept) -> Remark | None:
    """Return the remark for a name stored as `found`, or None if dbzero reads back the same value."""
    error = found.error
    if error is None:
        return Remark(name, "changed", found.changes) if found.changes else None
    change: Change = "lost" if found.value is NOTHING else "changed"
    return Remark(name, change, refused_because(error))


def refused_because(error: Exception) -> str:
    """Describe why dbzero rejected or damaged a value, based on dbzero's error."""
    text = str(error).strip()
    head, _, kind = text.partition("Type unsupported by dbzero: ")
    if not head and kind:
        return f"{kind} cannot be stored by dbzero"
    if isinstance(error, UnicodeEncodeError):
        return "dbzero does not store lone surrogates; the string is read back empty"
    if text == "int too big to convert":
        return "dbzero stores integers in 64 bits; a larger one is read back as -1"
    if "negative int to unsigned" in text:
        return "dbzero cannot hash a negative integer in a set"
    if "hash function" in text:
        return "dbzero cannot hash this kind of key, nor negative integers"
    if "Lambda" in text or "function attributes" in text:
        return "a function or lambda written by the model cannot be stored by dbzero"
    return f"rejected by dbzero: {text}"


def written_after(name: str, culprit: str) -> Remark:
    """Return the remark for a name that is lost because STATEK writes it after `culprit`, whose value is rejected."""
    return Remark(
        name, "lost", f"STATEK writes it after `{culprit}`, which dbzero rejected, so it was never written"
    )


@dataclass(slots=True)
class StoredVariables:
    """The result of storing variables: the stored forms, the remarks, and the error that STATEK finally raises."""

    names: dict[str, object]
    remarks: list[Remark] = field(default_factory=list)
    error: Exception | None = None


def store_variables(before: Mapping[str, object], after: Mapping[str, object]) -> StoredVariables:
    """Store the variables `after` a block, given those `before` it, and return the result; may raise `StoreKills`."""
    names = dict(before)
    result = StoredVariables(names)
    pending = list(_written(before, after, result.remarks))
    for place, name in enumerate(pending):
        found = _kept(name, after[name])
        remark = remark_of(name, found)
        if remark is not None:
            result.remarks.append(remark)
        if found.value is not NOTHING:
            names[name] = found.value
        if found.error is not None:
            result.error = found.error
            result.remarks += [written_after(other, name) for other in pending[place + 1 :]]
            break
    if len(names) != len(before):
        result.names = {name: names[name] for name in in_store_order(names)}
    return result


def predict_losses(before: Mapping[str, object], after: Mapping[str, object]) -> list[Remark]:
    """Predict how dbzero's store would affect the names that a block bound, without storing anything."""
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
            return [*remarks, Remark(name, end.change, str(end))]
        remark = remark_of(name, found)
        if remark is not None:
            remarks.append(remark)
        if found.error is not None:
            return remarks + [written_after(other, name) for other in bound[place + 1 :]]
    return remarks


def _written(
    before: Mapping[str, object], after: Mapping[str, object], remarks: list[Remark]
) -> Iterator[str]:
    """Yield the names that STATEK writes: new names, and names whose value has changed."""
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
    """Return whether code can distinguish two values that STATEK treats as equal."""
    if isinstance(old, List) and isinstance(value, List):
        return len(old) != len(value)
    if isinstance(old, StoredCollection):
        # An equal plain collection would become the same stored collection.
        return False
    return type(old) is not type(value) or hasattr(old, ALIKE)


def _kept(name: str, value: object) -> Kept:
    try:
        return kept(value)
    except StoreKills as end:
        raise type(end)(f"`{name}`: {end}") from None


_STORED: Final[Mapping[type, type]] = {list: List, tuple: Tuple, dict: Dict, set: Set}


def predict_refusals(before: Mapping[str, object], source: str) -> tuple[Remark, ...]:
    """Return remarks for operations in `source` that would fail or be lost in STATEK for the values in `before`.

    These are calls to methods that dbzero's collections lack, and `+=` with a list, whose result is lost.
    Names that the code rebinds, other operators, and functions are not covered; use a release's profile for
    these.
    """
    kept = tuple(
        (name, type(value)) for name, value in before.items() if type(value) in _STORED and name in source
    )
    return _refused_uses(kept, source) if kept else ()


@lru_cache(maxsize=512)
def _refused_uses(kept: tuple[tuple[str, type], ...], source: str) -> tuple[Remark, ...]:
    """Return the remarks from `predict_refusals`, cached by the types of the values and the source."""
    nodes = list(ast.walk(ast.parse(source)))
    augmented = {node.target for node in nodes if isinstance(node, ast.AugAssign)}
    bound = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node not in augmented
    }
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    kinds = {name: kind for name, kind in kept if name not in bound}
    uses = [node for node in nodes if isinstance(node, ast.Attribute | ast.AugAssign)]
    found: dict[str, Remark] = {}
    for use in sorted(uses, key=lambda node: (node.lineno, node.col_offset)):
        remark = _of_use(use, kinds)
        if remark is not None:
            found.setdefault(remark.name, remark)
    return tuple(found.values())


def _of_use(node: ast.AST, kinds: Mapping[str, type]) -> Remark | None:
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()) if kinds.get(name) is list:
            why = "it makes a longer List, which STATEK treats as equal to the old one and does not write"
            return Remark(f"{name} +=", "lost", why)
        case ast.Attribute(value=ast.Name(id=name), attr=method) if name in kinds:
            kind, there = kinds[name], _STORED[kinds[name]]
            if hasattr(kind, method) and not hasattr(there, method):
                why = f"a stored {kind.__name__} is dbzero's {there.__name__}, which has no {method}"
                return Remark(f"{name}.{method}", "refused", why)
    return None
