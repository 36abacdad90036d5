"""A matcher for regular expressions that only counts its steps.

It plays the search that Python's engine would make, over the same parsed pattern, with a stack of its own.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from re import _casefix as casefix  # type: ignore[attr-defined]
from re import _constants as ops  # type: ignore[attr-defined]  # no public access to parsed patterns
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

# Parsed patterns are untyped tuples.
Node = Any
Test = Callable[[str], bool]

REPEATS: Final = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
"""Nodes that repeat what is inside them."""

_MAX_PROGRAM: Final = 4_000
_MAX_COPIES: Final = 32


def parsed(pattern: str | bytes, flags: int) -> Node:
    """Return the pattern as `re` parses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parser.parse(pattern, flags & ~re.DEBUG)


@dataclass(slots=True)
class Program:
    """Instructions of the counting matcher: (what, argument, argument)."""

    code: list[tuple[str, Any, Any]] = field(default_factory=list)
    loops: int = 0
    written: list[int] = field(default_factory=lambda: [0])
    """How many instructions there are, with those of the programs within this one, which share the count."""

    def add(self, what: str, first: Any = None, second: Any = None) -> int:
        """Append an instruction and return its index."""
        self.code.append((what, first, second))
        self.written[0] += 1
        return len(self.code) - 1

    def patch(self, at: int, first: Any, second: Any = None) -> None:
        """Fill in where the instruction at index `at` goes."""
        self.code[at] = (self.code[at][0], first, second)


@lru_cache(maxsize=256)
def program_of(pattern: str | bytes, flags: int, *, whole: bool = False) -> Program:
    """Return the program that plays `pattern`. Long counted repeats are played as repeats without end.

    With `whole` it matches at the end of the text only, as `fullmatch` does.
    """
    program = Program()
    _compile(program, parsed(pattern, flags), flags)
    if whole:
        program.add("at", ops.AT_END_STRING, False)
    program.add("match")
    return program


def folded_characters(nodes: Iterable[Node], flags: int) -> int:
    """Return how many characters of ranges `re` folds one by one to compile a pattern without regard to case."""
    many = 0
    for op, argument in nodes:
        if op is ops.IN and flags & re.IGNORECASE:
            many += sum(bounds[1] - bounds[0] for kind, bounds in argument if kind is ops.RANGE)
        elif op is ops.SUBPATTERN:
            many += folded_characters(argument[3], (flags | argument[1]) & ~argument[2])
        else:
            many += sum(folded_characters(part, flags) for part in parts_of(op, argument))
    return many


def parts_of(op: Node, argument: Node) -> list[Node]:
    """Return the sub-patterns of a node."""
    if op in REPEATS:
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


def _compile(program: Program, nodes: Iterable[Node], flags: int) -> None:
    for op, argument in nodes:
        if op in REPEATS:
            _compile_repeat(program, argument, flags, greedy=op is not ops.MIN_REPEAT)
        elif op is ops.BRANCH:
            _compile_branch(program, argument[1], flags)
        elif op is ops.GROUPREF_EXISTS:
            # Which of the two it is depends on a group; both are counted.
            _compile_branch(program, [argument[1], argument[2] or []], flags)
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


def _compile_repeat(program: Program, argument: Node, flags: int, *, greedy: bool) -> None:
    low, high, body = int(argument[0]), argument[1], argument[2]
    # A repeat within a repeat within a repeat would be written twice as often with each of them.
    copied = program.written[0] <= _MAX_PROGRAM
    before = len(program.code)
    for _ in range(low if copied else 0):
        _compile(program, body, flags)
        if len(program.code) - before > _MAX_PROGRAM:
            break
    if copied and high is not ops.MAXREPEAT and int(high) - low <= _MAX_COPIES:
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


def _compile_branch(program: Program, options: list[Node], flags: int) -> None:
    jumps = []
    for option in options[:-1]:
        split = program.add("split")
        _compile(program, option, flags)
        jumps.append(program.add("jump"))
        program.patch(split, split + 1, len(program.code))
    _compile(program, options[-1], flags)
    for jump in jumps:
        program.patch(jump, len(program.code))


def _compile_lookaround(program: Program, op: Node, argument: Node, flags: int) -> None:
    direction, body = argument
    if direction < 0:
        return
    inner = Program(written=program.written)
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
            return lambda char: char == wanted or wanted in _cases(char)
        return lambda char: char == wanted
    if op is ops.RANGE:
        low, high = chr(argument[0]), chr(argument[1])
        if flags & re.IGNORECASE:
            return lambda char: low <= char <= high or any(low <= case <= high for case in _cases(char))
        return lambda char: low <= char <= high
    if op is ops.CATEGORY:
        return _category(argument)
    tests = [_test(kind, value, flags) for kind, value in argument if kind is not ops.NEGATE]
    any_of = tests[0] if len(tests) == 1 else (lambda char: any(test(char) for test in tests))
    return _negated(any_of) if argument[0][0] is ops.NEGATE else any_of


@lru_cache(maxsize=4096)
def _cases(char: str) -> frozenset[str]:
    """Return what `re` takes for the same character without regard to case, and perhaps more."""
    lower = char.lower()
    same = {char, lower, char.upper(), lower.upper(), char.upper().lower()}
    folded = {case for case in same if len(case) == 1}
    return frozenset(
        folded | {chr(other) for case in folded for other in casefix._EXTRA_CASES.get(ord(case), ())}
    )


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

    def __init__(self, program: Program, text: str) -> None:
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


def steps_to_search(program: Program, text: str, limit: int, *, anchored: bool, every: bool) -> int:
    """Return the steps a search takes; more than `limit` means it was given up there."""
    return _Matcher(program, text).steps_to_search(limit, anchored=anchored, every=every)
