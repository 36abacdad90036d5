"""The expression language for eval files: a small subset of Python, over tables, arguments and results.

`row.name` is the value under a key, never a Python attribute. Only the functions in `FUNCTIONS` can be called, and no
name starts with an underscore. A string that starts with `=` is an expression, and one that contains `{expression}` is
a template; any other string is literal.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import CodeType
from typing import Any, Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput

Scope = Mapping[str, Any]
"""The values of the names in an expression."""

LONGEST: Final = 4_000
"""The maximum length of an expression, in characters."""


class BadExpression(BadInput):
    """Raised for an invalid expression, or one with an unknown name."""


class Unanswerable(BadInput):
    """Raised if an expression cannot be evaluated, for example because a key or a row is missing."""


# -- functions for expressions ----------------------------------------------------------------------------------


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Mapping) and name in value:
        return value[name]
    if isinstance(value, Mapping):
        raise Unanswerable(f"no key {name!r}; available: {', '.join(map(str, value)) or 'none'}")
    raise Unanswerable(f"{value!r:.60} has no key {name!r}")


def _fits(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(key in row and row[key] == value for key, value in wanted.items())


def _where(rows: Iterable[Mapping[str, Any]], **wanted: Any) -> list[Any]:
    """Return the rows with these values."""
    return [row for row in rows if _fits(row, wanted)]


def _some(rows: Iterable[Mapping[str, Any]], **wanted: Any) -> bool:
    """Return whether any row has these values."""
    return any(_fits(row, wanted) for row in rows)


def _one(rows: Iterable[Mapping[str, Any]], **wanted: Any) -> Any:
    """Return the first row with these values."""
    for row in rows:
        if _fits(row, wanted):
            return row
    raise Unanswerable(f"no row with {wanted}")


def _column(rows: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    """Return one value from every row."""
    return [_member(row, key) for row in rows]


def _total(rows: Iterable[Mapping[str, Any]], key: str) -> Any:
    """Return the total of a column, rounded to two decimals."""
    return _rounded(sum(_column(rows, key)))


def _rounded(number: float, digits: int = 2) -> Any:
    """Return a rounded number; an integer stays an integer."""
    near = round(number, digits)
    return int(near) if near == int(near) else near


def _extreme(choose: Any, word: str) -> Any:
    def row(rows: Iterable[Mapping[str, Any]], key: str) -> Any:
        found = list(rows)
        if not found:
            raise Unanswerable(f"no rows to choose the {word} {key!r} from")
        return choose(found, key=lambda row: _member(row, key))

    return row


def _by(rows: Iterable[Mapping[str, Any]], key: str, down: bool = False) -> list[Any]:
    """Return the rows sorted by a column."""
    return sorted(rows, key=lambda row: _member(row, key), reverse=down)


def _fields(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a row with only some of its values."""
    return {key: _member(row, key) for key in keys}


def _around(text: str, mark: str) -> tuple[str, str]:
    first, found, rest = text.partition(mark)
    if not found:
        raise Unanswerable(f"no {mark!r} in {text!r:.60}")
    return first, rest


def _joined(items: Iterable[Any], by: str = ", ") -> str:
    """Return items joined into one string."""
    return by.join([shown(item) for item in items])


def _of_numbers(sign: str, operate: Any) -> Any:
    """Return an operation that rejects strings, because repeated strings could become huge."""

    def operation(left: Any, right: Any) -> Any:
        if isinstance(left, int | float) and isinstance(right, int | float):
            return operate(left, right)
        raise Unanswerable(f"{left!r:.40} {sign} {right!r:.40}: expected two numbers")

    return operation


FUNCTIONS: Final[Mapping[str, Any]] = {
    "after": lambda text, mark: _around(text, mark)[1],
    "any": any,
    "before": lambda text, mark: _around(text, mark)[0],
    "by": _by,
    "column": _column,
    "fields": _fields,
    "flat": lambda lists: [item for inner in lists for item in inner],
    "int": int,
    "joined": _joined,
    "least": _extreme(min, "least"),
    "len": len,
    "lower": str.lower,
    "max": max,
    "min": min,
    "most": _extreme(max, "most"),
    "one": _one,
    "round": _rounded,
    "some": _some,
    "sorted": sorted,
    "str": str,
    "sum": sum,
    "total": _total,
    "where": _where,
    "zip": zip,
}
"""The functions available in expressions."""

# -- reading ----------------------------------------------------------------------------------------------------

_NODES: Final = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.Attribute, ast.Subscript, ast.Slice, ast.List,
    ast.Tuple, ast.Dict, ast.Compare, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add,
    ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In,
    ast.NotIn, ast.Is, ast.IsNot, ast.IfExp, ast.Call, ast.keyword, ast.ListComp, ast.GeneratorExp,
    ast.comprehension,
)  # fmt: skip


class _Rewritten(ast.NodeTransformer):
    """Turns attributes into keys, and restricts `*` and `%` to numbers.

    Functions get reserved names, so that a table or an argument may be called `total`.
    """

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name), "every node was visited"
        arguments = [self.visit(argument) for argument in node.args]
        keywords = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        return ast.Call(ast.Name(f"_{node.func.id}", ast.Load()), arguments, keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        inner = self.visit(node.value)
        return ast.Call(ast.Name("_member", ast.Load()), [inner, ast.Constant(node.attr)], [])

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Mult | ast.Mod):
            name = "_times" if isinstance(node.op, ast.Mult) else "_rest"
            return ast.Call(ast.Name(name, ast.Load()), [left, right], [])
        return ast.BinOp(left, node.op, right)


_GIVEN: Final[dict[str, Any]] = {
    **{f"_{name}": function for name, function in FUNCTIONS.items()},
    "_member": _member,
    "_times": _of_numbers("*", operator.mul),
    "_rest": _of_numbers("%", operator.mod),
    "__builtins__": {},
}


@cache
def _compiled(source: str) -> tuple[CodeType, frozenset[str]]:
    """Return an expression's compiled code and the names it uses."""
    if len(source) > LONGEST:
        raise BadExpression(f"an expression of {len(source)} characters, expected at most {LONGEST}")
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BadExpression(f"{source!r} is not an expression: {reason}") from None
    for node in ast.walk(tree):
        _refuse(node, source)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    needed = {node.id for node in names} - bound
    code = compile(ast.fix_missing_locations(_Rewritten().visit(tree)), "<eval>", "eval")
    return code, frozenset(needed)


def _refuse(node: ast.AST, source: str) -> None:
    if not isinstance(node, _NODES):
        raise BadExpression(f"{source!r}: {type(node).__name__} is not supported in eval expressions")
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name.startswith("_"):
            raise BadExpression(f"{source!r}: {name!r} begins with an underscore")
    if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
        called = ast.unparse(node.func)
        near = suggestion(called, FUNCTIONS)
        raise BadExpression(
            f"{source!r}: unknown function {called!r}"
            f"{f'.{near}' if near else '; known: ' + ', '.join(FUNCTIONS)}"
        )


def evaluate(source: str, scope: Scope) -> Any:
    """Return an expression's value; raises `Unanswerable` if it cannot be evaluated with these values."""
    code, _ = _compiled(source)
    try:
        return eval(code, {**_GIVEN, **scope})  # every node was checked
    except Unanswerable:
        raise
    except Exception as error:  # noqa: BLE001  # any error of a file's expression
        raise Unanswerable(f"{source!r}: {type(error).__name__}: {error}") from None


_QUOTED: Final = r"""[^{}'"]|'[^']*'|"[^"]*\""""
_BRACES: Final = re.compile(rf"\{{\{{|\}}\}}|\{{((?:{_QUOTED}|\{{(?:{_QUOTED})*\}})*)\}}|\{{")
"""Matches a doubled brace, an expression in braces (which may contain a mapping), or an unclosed brace."""


@cache
def _parts(text: str) -> tuple[tuple[bool, str], ...]:
    """Return a template's parts, each as a flag (true for an expression) and its text."""
    found: list[tuple[bool, str]] = []
    at = 0
    for brace in _BRACES.finditer(text):
        if brace[0] == "{":
            raise BadExpression(f"{text!r:.80}: unclosed brace; write {{{{ for a literal brace")
        literal = "" if brace[1] is not None else brace[0][0]
        found += [(False, text[at : brace.start()] + literal), (brace[1] is not None, brace[1] or "")]
        at = brace.end()
    return tuple([part for part in (*found, (False, text[at:])) if part[0] or part[1]])


def filled(text: str, scope: Scope) -> str:
    """Return a template with its expressions replaced by their values."""
    if "{" not in text and "}" not in text:
        return text
    return "".join([shown(evaluate(part, scope)) if code else part for code, part in _parts(text)])


def shown(value: Any) -> str:
    """Format a value for a template: lists are joined by commas, and booleans become yes or no."""
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def resolved(value: Any, scope: Scope) -> Any:
    """Return a value from a file with all expressions and templates in it evaluated."""
    if isinstance(value, str):
        return evaluate(value[1:], scope) if value.startswith("=") else filled(value, scope)
    if isinstance(value, Mapping):
        return {key: resolved(item, scope) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolved(item, scope) for item in value]
    return value


def each(source: str, scope: Scope) -> Iterator[Scope]:
    """For each item of `name in EXPRESSION`, yield the scope with the item bound to this name."""
    name, _, items = source.partition(" in ")
    found = evaluate(items, scope)
    if not isinstance(found, list | tuple):
        raise Unanswerable(f"{source!r}: expected a list, got {found!r:.60}")
    for item in found:
        yield {**scope, name.strip(): item}


def expressions_in(value: Any) -> Iterator[str]:
    """Yield the expressions in a value from a file."""
    if isinstance(value, str):
        if value.startswith("="):
            yield value[1:]
        elif "{" in value or "}" in value:
            yield from (part for code, part in _parts(value) if code)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from expressions_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from expressions_in(item)


def names_in(value: Any) -> frozenset[str]:
    """Return the names used in a value from a file; raises `BadExpression` if it cannot be parsed."""
    return frozenset(name for source in expressions_in(value) for name in _compiled(source)[1])


def check_names(value: Any, known: Sequence[str] | frozenset[str], what: str) -> None:
    """Raise `BadExpression` if a value uses a name that is not `known`; `what` describes the value in the message."""
    for name in sorted(names_in(value)):
        if name not in known:
            hint = suggestion(name, sorted(known)) or f" Known here: {', '.join(sorted(known)) or 'nothing'}"
            raise BadExpression(f"{what} names {name!r}, which is not defined there.{hint}")
