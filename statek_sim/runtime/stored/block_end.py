"""What a job's names hold after a block, when STATEK writes them to its store, and the remarks about it.

STATEK goes through the names in the order of its store, after them those that the block bound (also anew, when it had
deleted them) in its order, and stops at the first value that is refused: what follows is lost with it, without a word
(behaviour 3).

Where plain collections are kept, what STATEK would refuse of a block is told from its code: a name that the block has
bound by then holds a plain one there too, so only names that it finds are looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from statek_sim.runtime.stored.containers import NOTHING, Dict, Kept, List, Set, StoreKills, Tuple, kept
from statek_sim.runtime.stored.ordering import in_store_order
from statek_sim.sandbox.llm_repr import StoredCollection

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


_STORED: Final[Mapping[type, type]] = {list: List, tuple: Tuple, dict: Dict, set: Set}


def foresee_uses(before: Mapping[str, object], source: str) -> tuple[Remark, ...]:
    """Return what STATEK would refuse of `source` because of what `before` holds; each name with its use once."""
    kept = tuple(
        (name, type(value)) for name, value in before.items() if type(value) in _STORED and name in source
    )
    return _refused_uses(kept, source) if kept else ()


@lru_cache(maxsize=512)
def _refused_uses(kept: tuple[tuple[str, type], ...], source: str) -> tuple[Remark, ...]:
    """Return what there is to say; jobs that run the same reply on names of the same kinds share it."""
    reading = _Reading(dict(kept), {})
    for statement in ast.parse(source).body:
        reading.visit(statement)
    return tuple(reading.found.values())


_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class _Reading(ast.NodeVisitor):
    """Reads code in the order in which it runs; a name that it binds is no kept one from there on.

    `kept` are the names that still hold what was kept, `found` what there is to say, by what it is about.
    """

    def __init__(self, kept: Mapping[str, type], found: dict[str, Remark]) -> None:
        self._kept = dict(kept)
        self.found = found

    def _tell(self, remarks: Iterator[Remark]) -> None:
        for remark in remarks:
            self.found.setdefault(remark.name, remark)

    def _without(self, names: Iterable[str]) -> _Reading:
        hidden = set(names)
        return _Reading({name: kind for name, kind in self._kept.items() if name not in hidden}, self.found)

    def _all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    # -- names --------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> None:
        """Forget a name that is bound or deleted."""
        if not isinstance(node.ctx, ast.Load):
            self._kept.pop(node.id, None)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Read the value before the names that take it."""
        self._all((node.value, *node.targets))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Read the value before the name, which an annotation alone does not bind."""
        self._all((node.annotation, node.value, node.target if node.value is not None else None))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Read the value before the name."""
        self._all((node.value, node.target))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """A kept list that is added to stays what it was."""
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and self._kept.get(node.target.id) is list:
            self._tell(_of_addition(node.target.id, node.op))
        self.visit(node.target)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """The error takes a name."""
        self._kept.pop(node.name or "", None)
        self._all((node.type, *node.body))

    def visit_alias(self, node: ast.alias) -> None:
        """An import takes a name."""
        self._kept.pop(node.asname or node.name.partition(".")[0], None)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        """A pattern takes a name."""
        self._kept.pop(node.name or "", None)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        """A pattern takes a name."""
        self._kept.pop(node.name or "", None)

    # -- what runs once, often, or not at all ---------------------------------------------------------------------

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        """What is gone through is read before the names that take its members."""
        self._all((node.iter, node.target, *node.body, *node.orelse))

    visit_AsyncFor = visit_For  # noqa: N815  # ast's own name

    def visit_If(self, node: ast.If) -> None:
        """Neither branch sees what the other binds; what either binds is unknown afterwards."""
        self.visit(node.test)
        branches = [self._without(()) for _ in range(2)]
        for branch, body in zip(branches, (node.body, node.orelse), strict=True):
            branch._all(body)
        self._kept = {
            name: kind for name, kind in self._kept.items() if all(name in b._kept for b in branches)
        }

    # -- scopes ---------------------------------------------------------------------------------------------------

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Parameters are no kept names."""
        self._all((*node.args.defaults, *node.args.kw_defaults))
        self._without(_parameters(node)).visit(node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Parameters are no kept names, nor is what the function binds, wherever it binds it."""
        self._all((*node.decorator_list, *node.args.defaults, *node.args.kw_defaults))
        self._kept.pop(node.name, None)
        self._without({*_parameters(node), *_bound_in(node.body)})._all(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # ast's own name

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """What a class binds is its own."""
        self._all((*node.decorator_list, *node.bases))
        self._kept.pop(node.name, None)
        self._without(())._all(node.body)

    def visit_ListComp(self, node: _Comprehension) -> None:
        """Names of a comprehension are its own."""
        self.visit(node.generators[0].iter)
        inner = self._without(_bound_in([part.target for part in node.generators]))
        for place, part in enumerate(node.generators):
            inner._all((*((part.iter,) if place else ()), *part.ifs))
        inner._all((node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815  # ast's own names

    # -- uses -----------------------------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A method that dbzero's collection lacks."""
        if isinstance(node.value, ast.Name) and node.value.id in self._kept:
            self._tell(_of_attribute(node.value.id, self._kept[node.value.id], node.attr))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """A slice of a tuple."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice()) if self._kept.get(name) is tuple:
                self._tell(iter([_refused(f"{name}[:]", tuple, "no slices")]))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """An operator that dbzero's collection lacks."""
        self._tell(_of_operator(node.left, node.op, node.right, self._kept))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """A function that wants one of Python's own collections."""
        self._tell(_of_call(node, self._kept))
        self.generic_visit(node)


def _parameters(function: _Function) -> Iterator[str]:
    args = function.args
    for parameter in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if parameter is not None:
            yield parameter.arg


def _bound_in(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                yield node.id


def _of_addition(name: str, operator: ast.operator) -> Iterator[Remark]:
    if isinstance(operator, ast.Add):
        why = "it makes a longer List, which STATEK takes for the old one and does not write"
        yield Remark(f"{name} +=", "lost", why)


def _of_call(call: ast.Call, kept: Mapping[str, type]) -> Iterator[Remark]:
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="json"), attr="dumps"), args=[ast.Name(id=name), *_]
        ) if name in kept:
            yield _refused(f"json.dumps({name})", kept[name], "no place in json")
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), ast.Name(id=kind)]):
            if name in kept and kind == kept[name].__name__:
                yield Remark(
                    f"isinstance({name}, {kind})", "changed", f"a kept {kind} is no {kind}: it is False"
                )


def _of_attribute(name: str, kind: type, attribute: str) -> Iterator[Remark]:
    if hasattr(kind, attribute) and not hasattr(_STORED[kind], attribute):
        yield _refused(f"{name}.{attribute}", kind, f"no {attribute}")


def _of_operator(left: Any, operator: ast.operator, right: Any, kept: Mapping[str, type]) -> Iterator[Remark]:
    first = kept.get(left.id) if isinstance(left, ast.Name) else None
    second = kept.get(right.id) if isinstance(right, ast.Name) else None
    if first is tuple and isinstance(operator, ast.Add):
        yield _refused(f"{left.id} +", tuple, "no +")
    elif first is dict and isinstance(operator, ast.BitOr):
        yield _refused(f"{left.id} |", dict, "no |")
    elif first is None and second is list and isinstance(operator, ast.Add | ast.Mult):
        sign = "+" if isinstance(operator, ast.Add) else "*"
        yield Remark(
            f"{sign} {right.id}", "kills", "dbzero ends the process when its List stands on the right"
        )


def _refused(use: str, kind: type, lack: str) -> Remark:
    return Remark(
        use, "refused", f"a kept {kind.__name__} is dbzero's {_STORED[kind].__name__}, which has {lack}"
    )
