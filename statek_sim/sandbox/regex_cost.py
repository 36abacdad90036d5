"""How many steps a regular expression may need, counted without running it.

Python's engine backtracks: `(a+)+$` against forty `a` takes longer than a lifetime and cannot be interrupted. So
before a risky search the same search is played by a slow, counting matcher over the parsed pattern. It only counts:
what the search finds still comes from `re`. Where the two differ (back-references and look-behind match freely here)
the count is an estimate, but the same one on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]  # no public access to parsed patterns
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget

MAX_STEPS: Final = 200_000
"""Steps that one search may take, plus `STEPS_PER_CHARACTER` for each character searched."""

STEPS_PER_CHARACTER: Final = 20

_SURE_STEPS: Final = 1_000_000
_SURE_STEPS_SHIFT: Final = 13
_SURE_LENGTH: Final = 12
_STEPS_PER_ITERATION: Final = 2
_MAX_PROGRAM: Final = 4_000
_MAX_COPIES: Final = 32

# Parsed patterns are untyped tuples.
Node = Any
Test = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a pattern can go wrong: `repeats` in a row multiply, repeats inside repeats explode."""

    repeats: int
    explodes: bool


def pay_for_search(
    budget: ExecutionBudget, pattern: re.Pattern[Any], text: Any, *, anchored: bool, every: bool
) -> None:
    """Pay for one search of `text`, or stop the code if it would take too many steps.

    `anchored` means at the start only, `every` means all matches and not only the first.
    """
    if not isinstance(text, str | bytes):
        return
    size = len(text)
    budget.scan(size >> 3)
    shape = _shape_of(pattern.pattern, pattern.flags)
    if shape is None or (size <= _SURE_LENGTH and shape.repeats <= 4):
        return
    if not shape.explodes:
        worst = size ** (shape.repeats + (not anchored))
        if worst <= _SURE_STEPS:
            budget.work(worst >> _SURE_STEPS_SHIFT)
            return
    limit = MAX_STEPS + STEPS_PER_CHARACTER * size
    played = _played(pattern, text)
    steps = played.steps_to_search(limit, anchored=anchored, every=every)
    if steps > limit:
        budget.stop(
            f"a regular expression needed more than {limit:,} steps for a text of {size:,} characters; the likely "
            "cause is a repeat inside a repeat, such as (a+)+"
        )
    budget.work(steps // _STEPS_PER_ITERATION)


def _played(pattern: re.Pattern[Any], text: str | bytes) -> _Matcher:
    program = _program_of(pattern.pattern, pattern.flags)
    return _Matcher(program, text if isinstance(text, str) else text.decode("latin-1"))


def _parsed(pattern: str | bytes, flags: int) -> Node:
    return parser.parse(pattern, flags & ~(re.DEBUG | re.TEMPLATE) if hasattr(re, "TEMPLATE") else flags)


@lru_cache(maxsize=512)
def _shape_of(pattern: str | bytes, flags: int) -> _Shape | None:
    """Return None for a pattern that always takes time in proportion to the text."""
    shape = _sequence_shape(_parsed(pattern, flags))
    return shape if shape.repeats or shape.explodes else None


def _sequence_shape(nodes: Iterable[Node]) -> _Shape:
    shapes = [_node_shape(op, argument) for op, argument in nodes]
    return _Shape(sum(shape.repeats for shape in shapes), any(shape.explodes for shape in shapes))


def _node_shape(op: Node, argument: Node) -> _Shape:
    if op in _REPEATS:
        low, high, body = argument
        inner = _sequence_shape(body)
        if high in (low, 1):
            return _Shape(inner.repeats * int(high) + (high != low), inner.explodes)
        return _Shape(1, inner.explodes or inner.repeats > 0 or _has_branch(body))
    shapes = [_sequence_shape(part) for part in _parts(op, argument)]
    branches = 1 if op is ops.BRANCH else 0
    return _Shape(max((s.repeats for s in shapes), default=0) + branches, any(s.explodes for s in shapes))


def _has_branch(nodes: Iterable[Node]) -> bool:
    return any(
        op is ops.BRANCH or any(_has_branch(part) for part in _parts(op, argument)) for op, argument in nodes
    )


def _parts(op: Node, argument: Node) -> list[Node]:
    """Return the sub-patterns of a node."""
    if op in _REPEATS:
        return [argument[2]]
    if op is ops.SUBPATTERN:
        return [argument[3]]
    if op is ops.BRANCH:
        return list(argument[1])
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return [argument[1]]
    if op is ops.ATOMIC_GROUP:
        return [argument]
    if op is ops.GROUPREF_EXISTS:
        return [part for part in argument[1:] if part is not None]
    return []


_REPEATS: Final = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)


@dataclass(slots=True)
class _Program:
    """Instructions of the counting matcher: (what, argument, argument)."""

    code: list[tuple[str, Any, Any]] = field(default_factory=list)
    loops: int = 0

    def add(self, what: str, first: Any = None, second: Any = None) -> int:
        self.code.append((what, first, second))
        return len(self.code) - 1

    def patch(self, at: int, first: Any, second: Any = None) -> None:
        self.code[at] = (self.code[at][0], first, second)


@lru_cache(maxsize=256)
def _program_of(pattern: str | bytes, flags: int) -> _Program:
    program = _Program()
    _compile(program, _parsed(pattern, flags), flags)
    program.add("match")
    return program


def _compile(program: _Program, nodes: Iterable[Node], flags: int) -> None:
    for op, argument in nodes:
        if op in _REPEATS:
            _compile_repeat(program, argument, flags, greedy=op is not ops.MIN_REPEAT)
        elif op is ops.BRANCH:
            _compile_branch(program, argument[1], flags)
        elif op is ops.SUBPATTERN:
            _compile(program, argument[3], (flags | argument[1]) & ~argument[2])
        elif op is ops.ATOMIC_GROUP:
            _compile(program, argument, flags)
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            _compile_lookaround(program, op, argument, flags)
        elif op is ops.AT:
            program.add("at", argument, bool(flags & re.MULTILINE))
        elif op in (ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY, ops.RANGE, ops.CATEGORY):
            program.add("test", _test(op, argument, flags))


def _compile_repeat(program: _Program, argument: Node, flags: int, *, greedy: bool) -> None:
    low, high, body = int(argument[0]), argument[1], argument[2]
    before = len(program.code)
    for _ in range(low):
        _compile(program, body, flags)
        if len(program.code) - before > _MAX_PROGRAM:
            break
    if high is not ops.MAXREPEAT and int(high) - low <= _MAX_COPIES:
        for _ in range(int(high) - low):
            split = program.add("split")
            _compile(program, body, flags)
            after = len(program.code)
            program.patch(split, *((split + 1, after) if greedy else (after, split + 1)))
        return
    loop = program.loops
    program.loops += 1
    split = program.add("split")
    program.add("mark", loop)
    _compile(program, body, flags)
    program.add("moved", loop)
    program.add("jump", split)
    after = len(program.code)
    program.patch(split, *((split + 1, after) if greedy else (after, split + 1)))


def _compile_branch(program: _Program, options: list[Node], flags: int) -> None:
    jumps = []
    for option in options[:-1]:
        split = program.add("split")
        _compile(program, option, flags)
        jumps.append(program.add("jump"))
        program.patch(split, split + 1, len(program.code))
    _compile(program, options[-1], flags)
    for jump in jumps:
        program.patch(jump, len(program.code))


def _compile_lookaround(program: _Program, op: Node, argument: Node, flags: int) -> None:
    direction, body = argument
    if direction < 0:
        return
    inner = _Program()
    _compile(inner, body, flags)
    inner.add("match")
    program.add("look", inner, op is ops.ASSERT)


def _test(op: Node, argument: Node, flags: int) -> Test:
    """Return a test for one character."""
    if op is ops.ANY:
        return (lambda _: True) if flags & re.DOTALL else (lambda char: char != "\n")
    if op is ops.NOT_LITERAL:
        return _negated(_test(ops.LITERAL, argument, flags))
    if op is ops.LITERAL:
        wanted = chr(argument)
        if flags & re.IGNORECASE:
            return lambda char: char.lower() == wanted.lower()
        return lambda char: char == wanted
    if op is ops.RANGE:
        low, high = chr(argument[0]), chr(argument[1])
        if flags & re.IGNORECASE:
            return lambda char: low <= char <= high or low <= char.swapcase() <= high
        return lambda char: low <= char <= high
    if op is ops.CATEGORY:
        return _category(argument)
    tests = [_test(kind, value, flags) for kind, value in argument if kind is not ops.NEGATE]
    any_of = tests[0] if len(tests) == 1 else (lambda char: any(test(char) for test in tests))
    return _negated(any_of) if argument[0][0] is ops.NEGATE else any_of


def _negated(test: Test) -> Test:
    return lambda char: not test(char)


def _category(name: Node) -> Test:
    text = str(name)
    if "WORD" in text:
        test: Test = _is_word
    else:
        test = str.isdigit if "DIGIT" in text else str.isspace
    return _negated(test) if "NOT" in text else test


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


class _Matcher:
    """Plays one program against one text, counting."""

    def __init__(self, program: _Program, text: str) -> None:
        self._program = program
        self._text = text

    def steps_to_search(self, limit: int, *, anchored: bool, every: bool) -> int:
        """Return the steps a search takes; more than `limit` means it was given up there."""
        steps = 0
        start = 0
        while start <= len(self._text) and steps <= limit:
            end, used = self._match(start, limit - steps)
            steps += used
            if anchored or (end is not None and not every):
                break
            start = start + 1 if end is None or end == start else end
        return steps

    def _match(self, start: int, limit: int) -> tuple[int | None, int]:
        """Return where a match from `start` ends, if one does, and the steps taken to know."""
        code, text, size = self._program.code, self._text, len(self._text)
        marks = (-1,) * self._program.loops
        pending = [(0, start, marks)]
        steps = 0
        while pending:
            at, position, marks = pending.pop()
            while steps <= limit:
                steps += 1
                what, first, second = code[at]
                if what == "test":
                    if position == size or not first(text[position]):
                        break
                    position += 1
                    at += 1
                elif what == "split":
                    pending.append((second, position, marks))
                    at = first
                elif what == "jump":
                    at = first
                elif what == "mark":
                    marks = (*marks[:first], position, *marks[first + 1 :])
                    at += 1
                elif what == "moved":
                    if marks[first] == position:
                        break
                    at += 1
                elif what == "match":
                    return position, steps
                else:
                    holds, used = self._holds(what, first, second, position, limit - steps)
                    steps += used
                    if not holds:
                        break
                    at += 1
            else:
                return None, steps
        return None, steps

    def _holds(self, what: str, first: Any, second: Any, position: int, limit: int) -> tuple[bool, int]:
        if what == "at":
            return self._is_at(str(first), position, multiline=second), 0
        end, used = _Matcher(first, self._text)._match(position, limit)
        return (end is not None) is second, used

    def _is_at(self, name: str, position: int, *, multiline: bool) -> bool:
        text, size = self._text, len(self._text)
        if "BOUNDARY" in name:
            before = position > 0 and _is_word(text[position - 1])
            after = position < size and _is_word(text[position])
            return (before == after) if "NON" in name else (before != after)
        if "BEGINNING" in name:
            return position == 0 or (multiline and name == "AT_BEGINNING" and text[position - 1] == "\n")
        if position == size:
            return True
        if name == "AT_END_STRING":
            return False
        return text[position] == "\n" and (multiline or position == size - 1)
