"""Programs that want too much: every operation that model code can reach, in every pattern that makes it grow.

Nothing here was recorded: operations and patterns are listed, programs are their products. Each program has a name of
the form `pattern: operation` and never ends, or asks for more than there is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Program:
    """One block of hostile code, or several, run one after the other in one namespace."""

    name: str
    blocks: tuple[str, ...]


SEEDS: Final = {
    "s": "s = 'ab' * 50_000",
    "w": "w = 'ab cd\\n' * 10_000",
    "b": "b = b'ab' * 50_000",
    "l": "l = list(range(30_000))",
    "r": "r = list(range(30_000, 0, -1))",
    "t": "t = tuple(range(30_000))",
    "p": "p = [(i % 7, i) for i in range(10_000)]",
    "g": "g = [[0] * 3_000, [0] * 3_000]",
    "d": "d = dict.fromkeys(range(10_000), 1)",
    "u": "u = {str(i) for i in range(3_000)}",
    "v": "v = {str(i) for i in range(2_000)}",
    "n": "n = 3 ** 80_000",
    "m": "m = 7 ** 40_000",
    "q": "from collections import deque\nq = deque(range(30_000))",
    "c": "from collections import Counter\nc = Counter(str(i) for i in range(3_000))",
    "o": "from collections import OrderedDict\no = OrderedDict.fromkeys(range(10_000), 1)",
    "e": "from decimal import Decimal\ne = Decimal('7.' + '3' * 20_000)",
    "h": "from decimal import Decimal\nh = Decimal('1e70000')",
    "f": "from fractions import Fraction\nf = Fraction(3 ** 8_000, 7 ** 7_000)",
    "k": "import json\nk = json.dumps(list(range(20_000)))",
    "a": "from datetime import datetime, timedelta, date\na = datetime(2026, 3, 1)",
}
"""Values that are large already, by the name that operations use; each costs little to make."""


def _sections() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and line[1:-1] in _NAMES:
            lines = found[line[1:-1]] = []
        elif line and not line.startswith("# "):
            lines.append(line.replace("⏎", "\n"))
    return {name: tuple(lines) for name, lines in found.items()}


_NAMES: Final = ("operations", "module operations", "growing", "huge", "turns")
_SECTIONS: Final = _sections()

OPERATIONS: Final = _SECTIONS["operations"]
"""Expressions over the values of `SEEDS`."""

MODULE_OPERATIONS: Final = _SECTIONS["module operations"]
"""As `OPERATIONS`, after `module: `."""

GROWING: Final = _SECTIONS["growing"]
"""`first statement ; statement that is repeated for ever`."""

HUGE: Final = _SECTIONS["huge"]
"""Blocks that ask for too much at once, or in a loop of their own."""

TURNS: Final = _SECTIONS["turns"]
"""Blocks that stay within the limits of a step and keep what they make."""

_IMPORTS: Final = (
    "import math, itertools, functools, operator, re, json, statistics, time, calendar\n"
    "from datetime import datetime, timedelta, date\nfrom decimal import Decimal\nfrom fractions import Fraction\n"
    "from collections import deque, Counter, defaultdict, OrderedDict\n"
)
_LINES_IN_A_LONG_BODY: Final = 20
_TURNS: Final = 200


def programs() -> Iterator[Program]:
    """Yield every program; names are unique, and the order is always the same."""
    for text in (*OPERATIONS, *MODULE_OPERATIONS):
        module, _, rest = text.partition(": ")
        known = module.isidentifier() and text in MODULE_OPERATIONS
        yield from _in_patterns(rest if known else text, f"import {module}\n" if known else "")
    for text in GROWING:
        first, _, again = text.partition(" ; ")
        yield Program(f"grown: {text}", (f"{_IMPORTS}{first}\nwhile True: {again}",))
        yield Program(
            f"grown in a call: {text}", (f"{_IMPORTS}{first}\n{_in_a_function(again)}\nwhile True: step()",)
        )
    for text in HUGE:
        yield Program(f"huge: {text}", (_IMPORTS + text,))
    for text in TURNS:
        yield Program(f"kept over turns: {text}", ("x = []", *[text] * _TURNS))


def _in_patterns(expression: str, imports: str) -> Iterator[Program]:
    start = imports + _seeds(expression)
    body = "\n".join([f"  {expression}"] * _LINES_IN_A_LONG_BODY)
    yield Program(f"repeated: {expression}", (f"{start}while True: {expression}",))
    yield Program(f"kept: {expression}", (f"{start}kept = []\nwhile True: kept.append({expression})",))
    yield Program(f"long body: {expression}", (f"{start}while True:\n{body}",))


def _seeds(expression: str) -> str:
    words = {word for word in _words(expression) if word in SEEDS}
    if "o" in words:
        words.add("d")
    return "".join(f"{SEEDS[word]}\n" for word in sorted(words))


def _words(text: str) -> Iterator[str]:
    word = ""
    for char in text + " ":
        if char.isidentifier() or (word and char.isalnum()):
            word += char
        else:
            yield word
            word = ""


def _in_a_function(statement: str) -> str:
    return "def step():\n  global x\n" + textwrap.indent(statement, "  ")
