"""Warmup source: blocks, `#STATEK: as tool` calls and metadata lines (behaviour 7.1)."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Final, TypeAlias, cast

from statek_sim.runtime.state.calls import CallSpec, CodeBlock

TOOL_MARKER: Final = "#STATEK: as tool"
"""Everything before this on a line is a tool call; everything after it is ignored."""

_SEPARATOR: Final = re.compile(r"\n\s*#\s*-{10,}\s*\n")
_DIRECTIVE: Final = "#STATEK:"
_METADATA: Final = re.compile(r"\s*#STATEK:\s*(?P<key>[A-Za-z_]\w*)\s*=\s*(?P<value>.+?)\s*")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")

_Bind = str | tuple[str, ...] | None

WarmupSource: TypeAlias = str | Sequence[str] | None
"""Warmup as people write it: one text with separators, a sequence of blocks, or nothing."""


@dataclass(frozen=True, slots=True)
class WarmupBlock:
    """One warmup block: `code` without its tool lines and metadata lines, which come apart."""

    code: str
    tool_calls: tuple[CallSpec, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def hidden(self) -> bool:
        """Whether `#STATEK: hidden = True`, exactly, keeps this block out of the conversation."""
        return self.metadata.get("hidden") is True

    def as_code_block(self) -> CodeBlock:
        """Return the same block in the form a reply has."""
        return CodeBlock(self.code, self.tool_calls, self.metadata)


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool line before it gets its id."""

    name: str
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    bind: _Bind

    def numbered(self, number: int) -> CallSpec:
        """Return the call with id `number`."""
        return CallSpec(f"STATEK-{number:03d}", self.name, self.args, self.kwargs, self.bind)


def parse_warmup(source: WarmupSource, *, bind_assignments: bool) -> tuple[WarmupBlock, ...]:
    """Return the blocks of warmup code, blank ones left out; calls are numbered from STATEK-001.

    One string is cut at separator lines (`# ----------`); each string of a sequence is one block.
    `bind_assignments` accepts `name = call(...) #STATEK: as tool` (003); STATEK 1.2 and 1.4 do not.
    Raises `SyntaxError` or `ValueError`, with STATEK's texts, for a line that cannot be read.
    """
    if source is None:
        return ()
    blocks = _SEPARATOR.split(source) if isinstance(source, str) else source
    return _parse_blocks(tuple(blocks), bind_assignments=bind_assignments)


@lru_cache(maxsize=512)
def _parse_blocks(blocks: tuple[str, ...], *, bind_assignments: bool) -> tuple[WarmupBlock, ...]:
    """Parse stripped blocks; the numbering runs through all of them."""
    numbers = count(1)
    texts = [text for block in blocks if (text := block.strip())]
    parsed = [_parse_block(text, bind_assignments=bind_assignments) for text in texts]
    return tuple(
        WarmupBlock(code, tuple(call.numbered(next(numbers)) for call in calls), metadata)
        for code, calls, metadata in parsed
    )


def _parse_block(text: str, *, bind_assignments: bool) -> tuple[str, list[_Call], dict[str, object]]:
    """Return code, calls and metadata of one block."""
    code: list[str] = []
    calls: list[_Call] = []
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
    """Return the literal that a metadata line gives to `key`."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"Invalid warmup metadata value for {key!r}: {text!r}") from error
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ValueError(f"Invalid warmup metadata value for {key!r}: {text!r}")


def _parse_assignment(text: str) -> _Call:
    """Read `name = call(...)` or `a, b = call(...)`; anything else as a bare call."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return _parse_call(text)
    match body:
        case [ast.Assign(targets=[target], value=value)] if (bind := _names(target)) is not None:
            return _read_call(value, text, bind)
    return _parse_call(text)


def _names(target: ast.expr) -> _Bind:
    """Return the names an assignment binds, or None when it binds anything but names."""
    if isinstance(target, ast.Name):
        return target.id
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    names = tuple(item.id for item in target.elts if isinstance(item, ast.Name))
    return names if len(names) == len(target.elts) else None


def _parse_call(text: str) -> _Call:
    """Read a bare call."""
    return _read_call(ast.parse(text, mode="eval").body, text, None)


def _read_call(node: ast.expr, text: str, bind: _Bind) -> _Call:
    """Return the call that `node` is; a bare name as argument stands for its own text."""
    if not isinstance(node, ast.Call):
        raise ValueError(f"Not a function call: {text!r}")
    name = _function_name(node.func, text)
    args = tuple(_argument(argument) for argument in node.args)
    kwargs = {keyword.arg: _argument(keyword.value) for keyword in node.keywords}
    # `f(**options)` has no keyword name: STATEK keeps None as the key, and the call fails when it runs.
    return _Call(name, args, cast("Mapping[str, object]", kwargs), bind)


def _function_name(function: ast.expr, text: str) -> str:
    """Return `f` for `f(...)` and for `module.f(...)`."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute):
        return function.attr
    raise ValueError(f"Unsupported function expression: {text!r}")


def _argument(node: ast.expr) -> object:
    """Return the value of a literal, or a name as a string.

    Python's error for other expressions ends in a memory address; ours leaves that out.
    """
    if isinstance(node, ast.Name):
        return node.id
    try:
        value: object = ast.literal_eval(node)
    except ValueError as error:
        raise ValueError(_ADDRESS.sub("", str(error))) from None
    return value
