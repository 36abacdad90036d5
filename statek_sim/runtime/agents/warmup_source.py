"""Parses warmup code: blocks, `#STATEK: as tool` calls, metadata lines, and the names that the code reads.

Source: behaviour 7.1.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any, Final, TypeAlias, cast

from statek_sim.runtime.state.chat_log import CallSpec, CodeBlock

TOOL_MARKER: Final = "#STATEK: as tool"
"""Marks a line of warmup code as a tool call; text after the marker is ignored."""

_SEPARATOR: Final = re.compile(r"\n\s*#\s*-{10,}\s*\n")
_DIRECTIVE: Final = "#STATEK:"
_METADATA: Final = re.compile(r"\s*#STATEK:\s*(?P<key>[A-Za-z_]\w*)\s*=\s*(?P<value>.+?)\s*")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")

_Bind = str | tuple[str, ...] | None

WarmupSource: TypeAlias = str | CodeBlock | Sequence[str | CodeBlock] | None
"""Warmup code as users write it: a string with separator lines, a block, a sequence of blocks, or None."""


def parse_warmup(source: WarmupSource, *, bind_assignments: bool) -> tuple[CodeBlock, ...]:
    """Split warmup code into blocks, dropping empty ones. Tool calls get the ids STATEK-001, STATEK-002, ...

    A string is split at separator lines (`# ----------`); each string in a sequence is one block. A `CodeBlock` is
    a parsed block, and stays as it is. `bind_assignments` allows `name = call(...) #STATEK: as tool` ("Error
    Handling"), which STATEK 1.2 and 1.4 do not. Raises SyntaxError or ValueError with STATEK's messages for an
    invalid line.
    """
    if source is None:
        return ()
    given = [source] if isinstance(source, CodeBlock) else source
    blocks = _SEPARATOR.split(given) if isinstance(given, str) else given
    blocks = [block for block in blocks if not _is_empty(block)]
    texts = tuple(block.strip() for block in blocks if isinstance(block, str))
    parsed = iter(_parse_blocks(texts, bind_assignments=bind_assignments))
    return tuple(next(parsed) if isinstance(block, str) else block for block in blocks)


def _is_empty(block: str | CodeBlock) -> bool:
    """Return whether a string is blank, or a block has nothing in it; a block of blanks is not empty."""
    if isinstance(block, str):
        return not block.strip()
    return not (block.code or block.tool_calls or block.metadata)


@lru_cache(maxsize=512)
def _parse_blocks(texts: tuple[str, ...], *, bind_assignments: bool) -> tuple[CodeBlock, ...]:
    """Parse blocks; tool calls are numbered across all blocks."""
    numbers = count(1)
    parsed = [_parse_block(text, bind_assignments=bind_assignments) for text in texts]
    return tuple(
        CodeBlock(code, tuple(replace(call, id=f"STATEK-{next(numbers):03d}") for call in calls), metadata)
        for code, calls, metadata in parsed
    )


def _parse_block(text: str, *, bind_assignments: bool) -> tuple[str, list[CallSpec], dict[str, object]]:
    """Return a block's code, its calls (without ids) and its metadata."""
    code: list[str] = []
    calls: list[CallSpec] = []
    metadata: dict[str, object] = {}
    for line in text.splitlines():
        if entry := _METADATA.fullmatch(line):
            metadata[entry["key"]] = _metadata_value(entry["key"], entry["value"])
        elif line.lstrip().startswith(_DIRECTIVE):
            raise ValueError(f"Invalid warmup metadata line: {line!r}")
        elif TOOL_MARKER in line:
            call = line.partition(TOOL_MARKER)[0].rstrip()
            calls.append(_parse_assignment(call) if bind_assignments else _parse_call(call))
        else:
            code.append(line)
    return "\n".join(code), calls, metadata


def _metadata_value(key: str, text: str) -> str | int | float | None:
    """Return a metadata line's value; raises ValueError unless it is None, or a literal string or number."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"Invalid warmup metadata value for {key!r}: {text!r}") from error
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ValueError(f"Invalid warmup metadata value for {key!r}: {text!r}")


def _parse_assignment(text: str) -> CallSpec:
    """Parse `name = call(...)`, `a, b = call(...)` or `call(...)`."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return _parse_call(text)
    match body:
        case [ast.Assign(targets=[target], value=value)] if (bind := _names(target)) is not None:
            return _read_call(value, text, bind)
    return _parse_call(text)


def _names(target: ast.expr) -> _Bind:
    """Return the names that an assignment binds, or None if any target is not a plain name."""
    if isinstance(target, ast.Name):
        return target.id
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    names = tuple(item.id for item in target.elts if isinstance(item, ast.Name))
    return names if len(names) == len(target.elts) else None


def _parse_call(text: str) -> CallSpec:
    """Parse `call(...)`."""
    return _read_call(ast.parse(text, mode="eval").body, text, None)


def _read_call(node: ast.expr, text: str, bind: _Bind) -> CallSpec:
    """Return the call in `node`, with argument names converted to strings; raises ValueError for other expressions."""
    if not isinstance(node, ast.Call):
        raise ValueError(f"Not a function call: {text!r}")
    name = _function_name(node.func, text)
    args = [_argument(argument) for argument in node.args]
    kwargs = {keyword.arg: _argument(keyword.value) for keyword in node.keywords}
    # For `f(**options)`, STATEK stores None as the keyword's name, and the call fails when it runs.
    return CallSpec("", name, args, cast("Mapping[str, object]", kwargs), bind)


def _function_name(function: ast.expr, text: str) -> str:
    """Return `f` for calls of the form `f(...)` or `module.f(...)`; raises ValueError otherwise."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute):
        return function.attr
    raise ValueError(f"Unsupported function expression: {text!r}")


def _argument(node: ast.expr) -> object:
    """Return a literal's value, or a name as a string.

    Raises ValueError for other expressions, with Python's message minus the memory address.
    """
    if isinstance(node, ast.Name):
        return node.id
    try:
        value: object = ast.literal_eval(node)
    except ValueError as error:
        raise ValueError(_ADDRESS.sub("", str(error))) from None
    return value


def parse_warmup_code(
    warmup_code: WarmupSource, *, bind_assignments: bool = False
) -> str | CodeBlock | list[str | CodeBlock] | None:
    """Return parsed warmup code: None without blocks, a block's code if it has nothing else, or a list of blocks."""
    parsed: list[str | CodeBlock] = [
        block if block.tool_calls or block.metadata or block.code is None else block.code
        for block in parse_warmup(warmup_code, bind_assignments=bind_assignments)
    ]
    return parsed[0] if len(parsed) == 1 else parsed or None


def unparsed_blocks(code: WarmupSource) -> list[CodeBlock]:
    """Return warmup code as it is, in blocks: separators and tool call lines in its text are only code."""
    blocks = [code] if isinstance(code, str | CodeBlock) else code or ()
    return [CodeBlock(block) if isinstance(block, str) else block for block in blocks]


def codes_of(warmup: Any) -> Iterable[str]:
    """Yield the source of each unparsed warmup block."""
    for block in [warmup] if isinstance(warmup, str | CodeBlock) else warmup:
        code = block.code if isinstance(block, CodeBlock) else block
        if code:
            yield code


def copy_locals(code: str, dest: dict[str, Any], local_vars: Mapping[str, Any] | None = None) -> None:
    """Copy the variables that `code` reads into `dest`; they are the caller's variables by default."""
    names = sys._getframe(1).f_locals if local_vars is None else local_vars
    for node in ast.walk(ast.parse(code)):
        read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Name) and read and node.id in names:
            dest.setdefault(node.id, names[node.id])


def get_referenced_locals(code: str) -> list[str]:
    """Return the names that `code` reads but does not bind, in order, excluding called functions and builtins."""
    return _Reading().names_of(ast.parse(code))


class _Reading(ast.NodeVisitor):
    """Collects the names that code reads, in order, except those it has already bound."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._bound: set[str] = set(dir(builtins))

    def names_of(self, tree: ast.AST) -> list[str]:
        """Return the names."""
        self.visit(tree)
        return list(self._found)

    def _bind(self, target: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self._bound.add(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._bind(element)
        elif isinstance(target, ast.Starred):
            self._bind(target.value)

    def _read_in(self, target: ast.AST) -> None:
        """Visit the parts of an assignment target that are read: the object and the key, but not a plain name."""
        if isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
            self.visit(target.value)
        if isinstance(target, ast.Subscript):
            self.visit(target.slice)
        if isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._read_in(element)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id not in self._bound:
            self._found.setdefault(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._read_in(target)
            self._bind(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.visit_Name(ast.Name(node.target.id, ast.Load()))
        else:
            self.visit(node.target)
        self.visit(node.value)
        self._bind(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._bind(node.target)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self._bind(node.target)
        for child in (*node.body, *node.orelse):
            self.visit(child)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._bind(item.optional_vars)
        for child in node.body:
            self.visit(child)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self._bound |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self.visit(part)
        self._bound.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in (
            *node.args.defaults,
            *(default_ for default_ in node.args.kw_defaults if default_ is not None),
        ):
            self.visit(default)

    def _comprehension(self, generators: list[ast.comprehension], *results: ast.expr) -> None:
        before = set(self._bound)
        for generator in generators:
            self.visit(generator.iter)
            self._bind(generator.target)
            for condition in generator.ifs:
                self.visit(condition)
        for result in results:
            self.visit(result)
        self._bound = before

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._comprehension(node.generators, node.elt)

    visit_SetComp = visit_ListComp  # noqa: N815
    visit_GeneratorExp = visit_ListComp  # noqa: N815

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, node.key, node.value)
