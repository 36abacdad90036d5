"""The rules that decide whether model-written code may run.

The rules and all messages are those of STATEK 1.4.2's restricted mode (behaviour 3): first STATEK's own rules
for names, imports and hidden tools, then RestrictedPython's. Most replies contain nothing that either set of
rules could reject, such as private names or functions. For these replies, a single pass with `survey`
replaces both checks.
"""

from __future__ import annotations
import __future__

import ast
import re
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from RestrictedPython import compile_restricted_exec
from RestrictedPython.transformer import FORBIDDEN_FUNC_NAMES, INSPECT_ATTRIBUTES

from statek_sim.errors import SandboxViolation


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


EXPORTED_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "datetime": _names("date datetime time timedelta timezone"),
    "calendar": _names("monthrange weekday isleap day_name day_abbr month_name month_abbr"),
    "time": _names("strftime"),
    "re": _names(
        "compile search match fullmatch findall finditer sub subn split escape"
        " ASCII A IGNORECASE I LOCALE L MULTILINE M DOTALL S VERBOSE X NOFLAG"
    ),
    "math": _names(
        "acos acosh asin asinh atan atan2 atanh ceil comb copysign cos cosh degrees dist erf erfc exp expm1 fabs"
        " factorial floor fmod frexp fsum gamma gcd hypot isclose isfinite isinf isnan isqrt lcm ldexp lgamma log"
        " log10 log1p log2 modf nextafter perm pow prod radians remainder sin sinh sqrt tan tanh trunc ulp"
        " pi e tau inf nan"
    ),
    "decimal": _names(
        "Decimal ROUND_CEILING ROUND_FLOOR ROUND_UP ROUND_DOWN ROUND_HALF_UP ROUND_HALF_DOWN ROUND_HALF_EVEN"
        " ROUND_05UP"
    ),
    "fractions": _names("Fraction"),
    "statistics": _names(
        "StatisticsError mean fmean geometric_mean harmonic_mean median median_low median_high median_grouped mode"
        " multimode pstdev pvariance stdev variance quantiles correlation covariance linear_regression"
    ),
    "collections": _names("Counter deque defaultdict OrderedDict"),
    "itertools": _names(
        "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse"
        " groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest"
    ),
    "functools": _names("reduce"),
    "operator": _names(
        "abs add and_ concat contains countOf eq floordiv ge gt index indexOf inv invert is_ is_not le length_hint"
        " lshift lt matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor"
    ),
    "json": _names("loads dumps"),
}
"""The names that restricted code can use from each module (STATEK 1.4.2); all other attributes are denied."""

DEFAULT_IMPORTS: Final = frozenset(EXPORTED_NAMES)
"""Modules that restricted code may import by default."""

DENIED_NAMES: Final = frozenset(
    {
        "__import__", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "locals", "open", "setattr",
        "type", "vars",
    }
)  # fmt: skip
"""Names that restricted code may neither read nor call (STATEK 1.4.2)."""

HELPER_PREFIX: Final = "_statek_"
"""Prefix of helper names in compiled code; model-written code may not use it."""

_MAX_NESTING: Final = 150
_MAX_COMPILED: Final = 200_000
"""Maximum number of nodes to compile; Python compiles a `finally` body once for each way of reaching it."""

_EXITS: Final = (ast.Return, ast.Break, ast.Continue)
_FORMATTER: Final = string.Formatter()
_KEYS: Final = re.compile(r"\[[^\]]*\]?")
"""Subscripts in a replacement field; a dot inside one does not read an attribute."""

_STATEKS_FLAGS: Final = __future__.annotations.compiler_flag
FORMAT_METHODS: Final = ("format", "format_map")
"""`str` methods that read attributes of their arguments.

Instead of these, compiled code calls a helper that checks the template.
"""

_PRIVATE_NAME: Final = 'invalid variable name because it starts with "_"'


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """The limits and allowed names for model-written code.

    `blocked_tools` are the hidden tools, and `allowed_tools` are the hidden tools that may still be called.
    With `restricted=False`, all code that Python can parse is accepted.
    """

    max_source_bytes: int = 200_000
    max_ast_nodes: int = 20_000
    allowed_imports: frozenset[str] = DEFAULT_IMPORTS
    allowed_tools: frozenset[str] = frozenset()
    blocked_tools: frozenset[str] = frozenset()
    restricted: bool = True


def checked(source: str, policy: SandboxPolicy) -> tuple[ast.Module, Survey]:
    """Return the syntax tree and survey for `source`, if `policy` allows the code.

    Raises `SandboxViolation` for forbidden code, `SyntaxError` where STATEK does not catch that error, and
    `RecursionError` for code nested more than 150 levels deep (in STATEK, the stack sets the limit). Python
    may issue SyntaxWarnings.
    """
    return _check_restricted(source, policy) if policy.restricted else _parse(source)


def check_import(name: str, allowed: frozenset[str], level: int) -> None:
    """Raise `SandboxViolation` unless `name` is an allowed top-level module; `level` is the number of leading dots."""
    if level:
        raise SandboxViolation("relative imports are not allowed")
    root = name.partition(".")[0]
    if root not in allowed:
        raise SandboxViolation(f"import '{root}' is not allowed")
    if name != root:
        raise SandboxViolation(f"import '{name}' is not available in the sandbox")


def _check_restricted(source: str, policy: SandboxPolicy) -> tuple[ast.Module, Survey]:
    size = len(source.encode("utf-8"))
    if size > policy.max_source_bytes:
        raise SandboxViolation(f"source is {size} bytes; limit is {policy.max_source_bytes}")
    try:
        tree, found = _parse(source)
    except SyntaxError as error:
        raise SandboxViolation(f"invalid Python syntax: {error}") from error
    if found.nodes > policy.max_ast_nodes:
        raise SandboxViolation(f"source has {found.nodes} AST nodes; limit is {policy.max_ast_nodes}")
    if not found.plain or found.has_import or found.names & (DENIED_NAMES | policy.blocked_tools):
        _NameRules(policy).visit(tree)
    if not found.plain:
        # RestrictedPython modifies the tree, so it gets a copy.
        _check_restrictedpython(ast.parse(source))
        _check_inner_attributes(tree)
    return tree, found


def _parse(source: str) -> tuple[ast.Module, Survey]:
    """Return the syntax tree and its survey; reject reserved names, and code too deep for the recursive visitors."""
    try:
        tree = ast.parse(source)
    except RecursionError:
        raise _nested_too_deep() from None
    found = survey(tree)
    if found.depth > _MAX_NESTING:
        raise _nested_too_deep()
    if not found.plain:
        if compiled_nodes(tree) > _MAX_COMPILED:
            # Python's own message for more than twenty nested blocks; each nested `finally` doubles the compiled code.
            raise SyntaxError("too many statically nested blocks")
        # Plain code has no name that starts with an underscore.
        _refuse_names_of_helpers(found)
    return tree, found


def compiled_nodes(tree: ast.AST) -> int:
    """Return how many nodes Python compiles for `tree`.

    Nodes in a `finally` block count once for each way of reaching it. The ways are the end of the `try`, an
    exception, and each `return`, `break` and `continue` inside the `try`.
    """
    return _compiled(tree)[0]


def _compiled(node: ast.AST) -> tuple[int, int]:
    """Return the number of compiled nodes for `node`, and the number of exits in `node` from the enclosing block."""
    nodes, exits = 1, int(isinstance(node, _EXITS))
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Try | ast.TryStar) and child in node.finalbody):
            inside, leaving = _compiled(child)
            nodes, exits = nodes + inside, exits + leaving
    if isinstance(node, ast.Try | ast.TryStar):
        finals = [_compiled(statement) for statement in node.finalbody]
        nodes += (2 + exits) * sum(inside for inside, _ in finals)
        exits += sum(leaving for _, leaving in finals)
    return nodes, exits


def _refuse_names_of_helpers(found: Survey) -> None:
    for name in sorted(found.names | found.bound):
        if name.startswith(HELPER_PREFIX):
            raise SandboxViolation(f"name '{name}' is reserved")


def _nested_too_deep() -> RecursionError:
    return RecursionError("maximum recursion depth exceeded")


def _check_restrictedpython(tree: ast.Module) -> None:
    try:
        result = compile_restricted_exec(tree, "<sandbox>")
    except SyntaxError as error:
        raise SandboxViolation(_joined(error.args) or str(error)) from error
    if not result.errors:
        return
    message = str(tuple(result.errors))
    if _PRIVATE_NAME in message:
        # As in STATEK, a single private name anywhere disables every other objection; only compiling can
        # still fail. STATEK's module has `from __future__ import annotations`, which the code inherits, so
        # annotations pass.
        compile(tree, "<sandbox>", "exec", _STATEKS_FLAGS, dont_inherit=True)
        return
    raise SandboxViolation(message)


def check_template(template: str) -> None:
    """Raise `SandboxViolation` if `template.format` would read an attribute that restricted code may not read.

    These are private attributes and attributes that lead to frames. Malformed templates are ignored, because
    `format` raises an error for them.
    """
    try:
        for _, field, spec, _ in _FORMATTER.parse(template):
            for name in _KEYS.sub("", field or "").split(".")[1:]:
                if _is_dunder(name):
                    raise SandboxViolation(f"dunder attribute '{name}' is not allowed")
                if name.startswith("_") or name in INSPECT_ATTRIBUTES:
                    raise SandboxViolation(f"attribute '{name}' is not allowed")
            if spec:
                check_template(spec)
    except ValueError:
        return


def _check_inner_attributes(tree: ast.Module) -> None:
    """Raise `SandboxViolation` for attributes that lead to frames, and thus to the budget.

    STATEK, which has no budget, allows these attributes.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in INSPECT_ATTRIBUTES:
            raise SandboxViolation(f"attribute '{node.attr}' is not allowed")
        for name in node.kwd_attrs if isinstance(node, ast.MatchClass) else ():
            if (
                _is_dunder(name)
                or name in (*INSPECT_ATTRIBUTES, *FORMAT_METHODS)
                or name.startswith(HELPER_PREFIX)
            ):
                raise SandboxViolation(f"attribute '{name}' is not allowed")


def _joined(parts: Iterable[object]) -> str:
    return "; ".join(str(part) for part in parts if part)


class _NameRules(ast.NodeVisitor):
    """Applies STATEK's own rules in STATEK's order; raises `SandboxViolation` for the first violation."""

    def __init__(self, policy: SandboxPolicy) -> None:
        self._policy = policy

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id in DENIED_NAMES:
            raise SandboxViolation(f"name '{node.id}' is not allowed")
        if _is_dunder(node.id):
            raise SandboxViolation(f"dunder name '{node.id}' is not allowed")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr.startswith(HELPER_PREFIX):
            raise SandboxViolation(f"name '{node.attr}' is reserved")
        if _is_dunder(node.attr):
            raise SandboxViolation(f"dunder attribute '{node.attr}' is not allowed")
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            check_import(alias.name, self._policy.allowed_imports, level=0)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module is None:
            raise SandboxViolation("relative imports are not allowed")
        check_import(node.module, self._policy.allowed_imports, node.level)
        for alias in node.names:
            self._check_imported_name(node.module, alias.name)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            self._check_called_name(node.func.id)
        self.generic_visit(node)

    def _check_imported_name(self, module: str, name: str) -> None:
        if name.startswith("_"):
            raise SandboxViolation(f"import '{name}' is not allowed")
        if module not in EXPORTED_NAMES:
            raise SandboxViolation(f"import '{module}' is not available in the sandbox")
        if name not in EXPORTED_NAMES[module]:
            raise SandboxViolation(f"import '{name}' is not allowed")

    def _check_called_name(self, name: str) -> None:
        if name in DENIED_NAMES:
            raise SandboxViolation(f"call to '{name}' is not allowed")
        if name in self._policy.blocked_tools and name not in self._policy.allowed_tools:
            raise SandboxViolation(f"tool '{name}' is not exposed to this job")


@lru_cache(maxsize=4096)
def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


_NAME: Final = ast.Name
_CONSTANT: Final = ast.Constant
_WITHOUT_NODES: Final = frozenset(
    {"id", "attr", "arg", "kind", "type_comment", "conversion", "level", "module", "simple", "is_async"}
)
"""Fields in syntax nodes that always contain a string or a number."""
_DEPTH_IN_DOUBT: Final = 18
_ROLES: Final = "__roles__"
_FORBIDDEN_CALLS: Final = frozenset({"eval", "exec"})


@dataclass(frozen=True, slots=True)
class Survey:
    """A summary of a syntax tree: counts, names, and whether RestrictedPython must check the code.

    `nodes` is the number of nodes that `ast.walk` yields, and `depth` the number of levels. `names` are all
    names that the code reads or writes; `bound` are the names of arguments, functions, imports, handlers and
    patterns. If `plain` is True, RestrictedPython would accept the code; otherwise it must decide.
    """

    nodes: int
    depth: int
    names: frozenset[str]
    bound: frozenset[str]
    has_import: bool
    plain: bool


def survey(tree: ast.Module) -> Survey:
    """Survey `tree`, visiting every node once, level by level."""
    nodes, depth, plain, has_import = 1, 0, True, False
    names: set[str] = set()
    bound: set[str] = set()
    level: list[Any] = [tree]
    while level:
        depth += 1
        below: list[Any] = []
        for node in level:
            kind = type(node)
            if kind is _NAME:
                # Most nodes are names and constants; their only child is the context of a name.
                nodes += 1
                names.add(node.id)
                plain = plain and (node.id not in FORBIDDEN_FUNC_NAMES or _is_read_print(node))
                continue
            if kind is _CONSTANT:
                continue
            if kind in _IMPORTS:
                has_import = True
            elif kind in _BINDING:
                bound.update(_names_bound(node))
            if plain and kind not in _PLAIN:
                check = _PLAIN_IF.get(kind)
                plain = check is not None and check(node)
            for name in NODE_FIELDS[kind]:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    inside = [item for item in value if isinstance(item, ast.AST)]
                    nodes += len(inside)
                    below += inside
                elif isinstance(value, ast.AST):
                    nodes += 1
                    if value._fields:
                        below.append(value)
        level = below
    plain = plain and depth <= _DEPTH_IN_DOUBT and not names & _FORBIDDEN_CALLS and all(map(_is_plain, names))
    return Survey(nodes, depth, frozenset(names), frozenset(bound), has_import, plain)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """Maps each class of syntax nodes to the fields that may contain nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = self[kind] = tuple(name for name in kind._fields if name not in _WITHOUT_NODES)
        return found


NODE_FIELDS: Final = _Fields()


def _names_bound(node: ast.AST) -> list[str]:
    """Return the names that a node binds with a string field instead of an `ast.Name`."""
    found = [getattr(node, field, None) for field in ("arg", "name", "asname", "rest")]
    return [name for name in (*found, *getattr(node, "names", ())) if isinstance(name, str)]


def _is_read_print(node: ast.Name) -> bool:
    return node.id == "print" and isinstance(node.ctx, ast.Load)


def _is_plain_attribute(node: ast.Attribute) -> bool:
    return _is_plain(node.attr) and node.attr not in INSPECT_ATTRIBUTES


def _is_plain_call(node: ast.Call) -> bool:
    keywords = [keyword.arg for keyword in node.keywords]
    return len(set(keywords)) == len(keywords)


def _is_plain_keyword(node: ast.keyword) -> bool:
    return node.arg is None or _is_plain(node.arg)


def _is_plain_alias(node: ast.alias) -> bool:
    return all(
        _is_plain(name) and "*" not in name and name not in FORBIDDEN_FUNC_NAMES
        for name in (node.name, node.asname or node.name)
    )


def _is_plain(name: str) -> bool:
    return not name.startswith("_") and not name.endswith(_ROLES)


_BINDING: Final = frozenset(
    {
        ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias, ast.ExceptHandler, ast.MatchAs,
        ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal,
    }
)  # fmt: skip
_IMPORTS: Final = frozenset({ast.Import, ast.ImportFrom})
_PLAIN: Final[frozenset[type[ast.AST]]] = frozenset(
    {
        ast.Module, ast.Expr, ast.Assign, ast.If, ast.For, ast.While, ast.Pass, ast.Assert, ast.Import, ast.ImportFrom,
        ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr, ast.FormattedValue,
        ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Subscript, ast.Slice, ast.ListComp, ast.SetComp, ast.DictComp,
        ast.GeneratorExp, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn,
    }
)  # fmt: skip
"""Node classes that RestrictedPython accepts in any form and that always compile."""

_PLAIN_IF: Final[dict[type[ast.AST], Callable[..., bool]]] = {
    ast.Attribute: _is_plain_attribute,
    ast.Call: _is_plain_call,
    ast.keyword: _is_plain_keyword,
    ast.alias: _is_plain_alias,
    ast.comprehension: lambda node: not node.is_async,
    ast.AugAssign: lambda node: isinstance(node.target, ast.Name) and not isinstance(node.op, ast.MatMult),
}


class RestrictedMethod:
    """A stored object's method as seen by agent code, which can only call it (dbzero 0.7.0, restricted).

    Python cannot read the method's signature, so a failing call is made only once, whereas a plain function
    is called twice.
    """

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        object.__setattr__(self, "_call", call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return _CALL(self)(*args, **kwargs)

    def __getattribute__(self, name: str) -> Any:
        """Deny access to every attribute; Python's own operations look up methods on the class."""
        raise AttributeError(f"Restricted method attribute access denied: {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Deny every assignment."""
        raise AttributeError(f"'RestrictedMethod' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return "<RestrictedMethod object at 0x...>"


_CALL: Any = vars(RestrictedMethod)["_call"].__get__
