"""What STATEK would refuse of a block that uses kept collections, told from its code where plain ones are kept.

A name that the block has bound by then holds a plain collection there too, so only names that it finds are looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from statek_sim.runtime.stored.block_end import Remark
from statek_sim.runtime.stored.containers import Dict, List, Set, Tuple

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
