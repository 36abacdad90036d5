"""Statements in agent code, each with one or more lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent
from typing import Final

from tools.random_programs.draw import Draw
from tools.random_programs.expressions import LEAVES, NAMES, expression, shown_expression

Statement = Callable[[Draw], str]


def _assign(draw: Draw) -> str:
    return f"{draw.of(NAMES)} = {draw.part(expression)}"


def _echo(draw: Draw) -> str:
    return draw.part(shown_expression)


def _print(draw: Draw) -> str:
    form = draw.of(
        (
            "print({0})",
            "print({0}, {1})",
            "print({0}, end='')",
            "print({0}, {1}, sep=' | ')",
            "print()",
            "print({0}, end='\\n\\n')",
            "print({0}, {1}, sep=None)",
            "print({0}, end=None)",
            "print({0}, file=None, flush=True)",
            "print(*[{0}, {1}], sep='')",
        )
    )
    return form.format(draw.part(shown_expression), draw.part(expression))


def _note(draw: Draw) -> str:
    return f"note('{draw.of(('one', 'two', 'three'))}')"


def _change(draw: Draw) -> str:
    name = draw.of(NAMES)
    return draw.of(
        (
            f"del {name}",
            f"{name} = {name}",
            f"x, y = {name}",
            "x, *y = [1, 2, 3]",
            "n = 1\nn += 1\nprint(n)",
            "items = [1]\nitems.append(2)",
            "a = b = c = 1",
        )
    )


_KEPT: Final = (
    "{name} = {0}",
    "{name}.append({0})",
    "{name}.append(range(2))",
    "{name}.append(2 ** 63)",
    "{name}[0] = {0}",
    "{name}['k'] = {0}",
    "{name}['k'] = 2 ** 64",
    "del {name}[0]",
    "del {name}['k']",
    "{name} += [{0}]",
    "{name}.sort()",
    "{name}.insert(0, {0})",
    "print({name}.pop())",
    "{name}.update({{'z': {0}}})",
    "{name}.extend([{0}, 'end'])",
    "{name}.add({0})",
    "print({name}.get('k'), {name}.get('z', 'none'))",
    "for k, v in {name}.items():\n    print(k, v)",
    "for item in {name}:\n    print(item)",
    "print(sorted({name}))",
    "print(list({name}), len({name}), bool({name}))",
    "print({name} == {other}, {name} != {other})",
    "print({name} == {0}, {0} != {name})",
    "{other} = {name}",
    "{other} = [{name}, {name}]",
    "{other} = {{'k': {name}}}",
    "print({name}[0], {name}[-1])",
    "print({name}['k'])",
    "print({name}[0:1], {name}[::-1])",
    "print({0} in {name})",
    "print(isinstance({name}, list), isinstance({name}, dict), isinstance({name}, tuple))",
    "import json\nprint(json.dumps({name}))",
    "print({name} + [{0}])",
    "print({name} * 2)",
    "print({name} | {{'z': {0}}})",
    "print('%s and %s' % {name})",
    "x, *y = {name}\nprint(x, y)",
    "print({name}.index(1), {name}.count(1))",
    "print({name}.index({0}))",
    "print({name}.count({0}), {name}.count('a'), {name}.count(True))",
    "{name}.remove({0})",
    "{name}.remove(1)\nprint({name})",
    "for item in {name}:\n    {name}.remove(item)",
    "{name}.extend([2 ** 63, {0}])",
    "{name}.update({{2 ** 63: {0}, -1: 1, 'after': 2}})",
    "print({name}.append, {name}.get)",
    "note({name})",
    "own = [1]\nown.append(own)\nprint(own[0])",
    "own = {{'k': 1}}\nown['own'] = [own]",
    "print({name}.keys())",
    "len({name}.pop)",
    "print({{**{name}}})",
    "print([*{name}], ({name},))",
    "print(max({name}), sum({name}))",
    "print(str({name}), repr({name}))",
)
"""Uses of variables stored by earlier replies, some of which end STATEK's process."""


def _kept(draw: Draw) -> str:
    form = draw.of(_KEPT)
    leaf = draw.of(LEAVES) if "{0}" in form else ""
    return form.format(leaf, name=draw.of(NAMES), other=draw.of(NAMES))


_LOST: Final = (
    "range(3)",
    "{1, 2}",
    "{'x', 'y', 3}",
    "{-1, 2}",
    "{'k': 1, -1: 'x'}",
    "{'k': 1, -1: 'x', 'after': 2}",
    "{2 ** 63: 'x', 'k': [1]}",
    "{1, 2 ** 63, -1}",
    "(1, 2 ** 65)",
    "{'k': (2 ** 64,)}",
    "[{-1: 2, 'k': 'cut\\0off'}]",
    "{3: 'c', 'b': 2, 1: None}",
    "lambda: 1",
    "2 ** 63",
    "-2 ** 63 - 1",
    "[1, 2 ** 64]",
    "{'k': 2 ** 63, 'z': 1}",
    "'cut\\0off'",
    "['cut\\0off']",
    "'half \\ud800'",
    "['\\ud83d']",
    "[note, 1]",
    "{'n': note, 'k': [echo]}",
    "(2, note)",
    "[ValueError]",
    "b'raw'",
    "1 + 2j",
    "[1 + 2j]",
    "frozenset([1])",
    "ValueError('e')",
    "iter([1])",
    "{'k': 1}.items()",
    "{(1, 2): 'pair'}",
)


def _lose(draw: Draw) -> str:
    return f"{draw.of(NAMES)} = {draw.of(_LOST)}"


_SCOPES: Final = (
    "def add(n):\n    global {0}\n    {0} = n\n    return {0}\nprint(add(5), {0})\nprint({0})",
    "{0} = 0\ndef add(n):\n    global {0}\n    {0} += n\nadd(5)\nadd(1)\nprint({0})",
    "def make():\n    global {0}, {1}\n    {0} = {1} = 'made'\nfor i in (1, 2):\n    make()\n    print({0})",
    "global {0}\n{0} = 3\nprint({0})",
    "def f():\n    global {0}\n    del {0}\nf()\nprint({0})",
    "{0} = 1\ntry:\n    raise ValueError('x')\nfinally:\n    del {0}",
    "try:\n    {0} = 9\n    del {1}\n    1 // 0\nexcept LookupError:\n    pass",
    "for {0} in (1, 2):\n    del {0}\n    fail('left')",
    "print([{0} := i for i in (1, 2)], {0})",
    "{0} = [({1} := i) + 1 for i in (1, 2)]\nprint({1})",
    "{0} = 1\n{0} = True\nprint({0})",
    "{0} = 1.0\nprint({0})",
    "{0} = 2 == 2.0",
    "exit = 5\nprint(exit)",
    "exit = note\nexit('bound')",
    "try:\n    1 // 0\nexcept ZeroDivisionError as {0}:\n    pass",
    "try:\n    raise KeyError('k')\nexcept KeyError as {0}:\n    pass\nprint({0})",
    "def {0}():\n    return 1\n{1} = {0}()\nprint({1})",
    "{0} = lambda n: n + 1\nprint({0}(1))",
    "with open('x') as {0}:\n    pass",
    "match 1:\n    case {0}:\n        print('matched', {0})",
    "del {0}, {1}",
    "{0} = {0} if {1} else {1}",
)
"""Statements that bind, delete and shadow names."""


def _scope(draw: Draw) -> str:
    return draw.of(_SCOPES).format(draw.of(NAMES), draw.of(NAMES))


_RAISES: Final = (
    "raise ValueError('bad invoice')",
    "raise RuntimeError",
    "raise KeyError('k')",
    "raise Exception('ż 😀\\nsecond line')",
    "assert 1 == 2, 'not equal'",
    "assert False",
    "raise StopIteration('s')",
    "raise LookupError('') from ValueError('inner')",
    "raise 'text'",
    "raise BaseException('let through')",
    "fail('tool says no')",
    "note_and_refuse('half done')",
)


def _raise(draw: Draw) -> str:
    return draw.of(_RAISES)


_REFUSED: Final = (
    "open('x')",
    "import os",
    "class A: pass",
    "[].__class__",
    "eval('1')",
    "x: int = 1",
    "return 1",
    "yield 1",
    "import datetime.datetime",
    "from math import *",
    "a = = 1",
    "print('unclosed",
    "  a = 1",
    "if True:",
    "getattr(a, 'b')",
    "_hidden = 1",
    "await note('x')",
    "global a",
    "nonlocal a",
    "break",
    "f'{'",
)
"""Code rejected by the sandbox or by Python, and similar code that is not."""


def _refused(draw: Draw) -> str:
    return draw.of(_REFUSED)


_IMPORTS: Final = (
    "import math\nprint(math.floor(2.5), math.pi)",
    "import json\nprint(json.dumps({'k': [1, None]}))",
    "from json import loads\na = loads('{\"k\": 1}')",
    "import re\nprint(re.findall('[a-z]+', 'ab cd'))",
    "from decimal import Decimal\nprint(Decimal('1.10') + 1)",
    "import datetime\nprint(datetime.date(2026, 1, 2), datetime.timedelta(days=1))",
    "from collections import Counter\nprint(Counter('aab').most_common())",
    "import itertools\nprint(list(itertools.accumulate([1, 2, 3])))",
    "import datetime\nprint(datetime.date.today(), datetime.datetime.now())",
    "from datetime import datetime, timedelta\na = datetime.now() + timedelta(minutes=5)\nprint(a.isoformat(), a.year)",
    "import datetime\nb = datetime.datetime.now()",
    "from datetime import date\nc = [date.today(), date(2026, 1, 2)]\nprint(c, c[0] > c[1])",
    "from decimal import Decimal\na = Decimal('12.50')\nb = {'net': a, 'gross': a * 2}",
    "import random\nprint(random.choice([1]))",
    "import string\nprint(string.digits)",
    "from functools import reduce\nprint(reduce(lambda x, y: x + y, [1, 2, 3]))",
    "import textwrap\nprint(textwrap.shorten('a long text', 8))",
    "import statistics\nprint(statistics.mean([1, 2]))",
    "from dataclasses import dataclass\nprint(dataclass)",
    "import time\nprint(time.time())",
)


def _import(draw: Draw) -> str:
    return draw.of(_IMPORTS)


_IDLE: Final = (
    "pass",
    "# only a comment",
    "'a text alone'",
    '"""several\nlines"""',
    "None",
    "...",
    "# x\n'y'",
)


def _idle(draw: Draw) -> str:
    return draw.of(_IDLE)


_EXITS: Final = (
    "exit('ok')",
    "exit()",
    "exit(0)",
    "exit('')",
    "exit(None)",
    "exit(False)",
    "exit(a)",
    "exit('Error: not really')",
    "exit({'status': 'done', 'items': [1]})",
    "exit('żółć 😀')",
    "exit({'k': ['cut\\0off'], 'a': 1})",
    "a = exit('kept')",
    "print(exit('inside'))",
    "if a:\n    exit('in branch')",
)


def _exit(draw: Draw) -> str:
    return draw.of(_EXITS)


PLAIN: Final[tuple[Statement, ...]] = (
    _print,
    _assign,
    _echo,
    _note,
    _echo,
    _assign,
    _change,
    _raise,
    _import,
    _idle,
    _exit,
    _refused,
    _kept,
    _kept,
    _kept,
    _lose,
    _scope,
)


def compound(statement: Statement) -> Statement:
    """Return compound statements that contain others made by `statement`."""

    def body(draw: Draw) -> str:
        return indent("\n".join(draw.some(statement, least=1, most=2)), "    ")

    def made(draw: Draw) -> str:
        form = draw.of(_FORMS)
        return form.format(body=draw.part(body), other=draw.part(body) if "{other}" in form else "")

    return made


_FORMS: Final = (
    "if a:\n{body}\nelse:\n{other}",
    "for i in [1, 2]:\n    note(i)\n{body}",
    "for i in range(2):\n{body}\nelse:\n{other}",
    "try:\n{body}\nexcept ValueError as error:\n    print('caught', error)",
    "try:\n{body}\nexcept Exception as error:\n    print('caught', error)\n{other}",
    "try:\n{body}\nexcept:\n{other}",
    "try:\n{body}\nfinally:\n{other}",
    "def f(n=1):\n{body}\n    return n\nprint(f())",
    "n = 0\nwhile n < 2:\n    n += 1\n{body}",
    "for i in []:\n{body}",
    "if not a:\n{body}",
)


def code(kinds: Sequence[Statement], inner: Sequence[Statement]) -> Statement:
    """Return a function that makes a code block from one to four statements of these kinds.

    Some are compound statements, which contain only statements made by `inner`.
    """

    def within(draw: Draw) -> str:
        return draw.of(inner)(draw)

    nested = compound(within)

    def any_kind(draw: Draw) -> str:
        return nested(draw) if draw.of((False,) * 4 + (True,)) else draw.of(kinds)(draw)

    def block(draw: Draw) -> str:
        return "\n".join(draw.some(any_kind, least=1, most=4)) + "\n"

    return block
