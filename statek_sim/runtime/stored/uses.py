"""What STATEK would refuse of a block that uses kept collections, told from its code where plain ones are kept.

A name that the block has bound by then holds a plain collection there too, so only names that it finds are looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from statek_sim.runtime.stored.block_end import Remark
from statek_sim.runtime.stored.containers import Dict, List, Set, Tuple

_STORED: Final[Mapping[type, type]] = {list: List, tuple: Tuple, dict: Dict, set: Set}


def foresee_uses(before: Mapping[str, object], source: str) -> list[Remark]:
    """Return what STATEK would refuse of `source` because of what `before` holds; each name with its use once."""
    kept: dict[str, type] = {
        name: type(value) for name, value in before.items() if type(value) in _STORED and name in source
    }
    if not kept:
        return []
    found: dict[str, Remark] = {}
    for statement in _statements(source):
        stored = {
            node.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
        }
        for name in stored - {_added_to(statement)}:
            if not isinstance(statement, ast.Assign):
                kept.pop(name, None)
        for remark in _of_statement(statement, kept):
            found.setdefault(remark.name, remark)
        for name in stored:
            kept.pop(name, None)
    return list(found.values())


@lru_cache(maxsize=256)
def _statements(source: str) -> tuple[ast.stmt, ...]:
    return tuple(ast.parse(source).body)


def _added_to(statement: ast.stmt) -> str:
    """Return the name that a statement adds to, empty if it is none."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name)):
            return name
    return ""


def _of_statement(statement: ast.stmt, kept: Mapping[str, type]) -> Iterator[Remark]:
    name = _added_to(statement)
    if kept.get(name) is list and isinstance(statement.op, ast.Add):  # type: ignore[attr-defined]  # it is added to
        why = "it makes a longer List, which STATEK takes for the old one and does not write"
        yield Remark(f"{name} +=", "lost", why)
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in kept:
                yield from _of_attribute(name, kept[name], attribute)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice()) if kept.get(name) is tuple:
                yield _refused(f"{name}[:]", tuple, "no slices")
            case ast.BinOp(left=left, op=operator, right=right):
                yield from _of_operator(left, operator, right, kept)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="json"), attr="dumps"), args=[ast.Name(id=name), *_]
            ):
                if name in kept:
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
