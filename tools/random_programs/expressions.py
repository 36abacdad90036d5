"""Expressions in agent code: values of many types, and what can go wrong with them."""

from __future__ import annotations

from typing import Final

from tools.random_programs.draw import Draw

NAMES: Final = ("a", "b", "c")
"""The examples' variables. None is initially set, so reading one may raise NameError."""

TEXTS: Final = (
    "'paid'",
    "''",
    "'zażółć gęślą'",
    "'付款'",
    "'😀'",
    "'two\\nlines'",
    "'tab\\tand \"quotes\" and \\'these\\''",
    "'back\\\\slash'",
    "' spaces '",
    "'{braces} %s'",
    "'# comment'",
    "'```'",
    "'x' * 60",
)
NUMBERS: Final = (
    "1",
    "0",
    "-7",
    "2.5",
    "1e3",
    "0.1 + 0.2",
    "10 ** 12",
    "True",
    "False",
    "7 // 2",
    "3.0",
    "-0.0",
)
CONTAINERS: Final = (
    "[]",
    "[1, 'x', None]",
    "()",
    "(1,)",
    "('net', 100)",
    "{}",
    "{'k': 1}",
    "{'net': 100, 'vat': {'rate': 23, 'due': [False]}}",
    "{1: 'one', 'two': 2}",
    "[[1, 2], [3]]",
    "[{'id': 1, 'tags': ['a', 'b']}, {'id': 2}]",
    "([1], {'k': (1, 2)})",
    "list(range(30))",
    "['ż', '\"', '\\n']",
    "[2.5, -1, True, '']",
)
PASSING: Final = (
    "{3}",
    "range(3)",
    "reversed([1, 2])",
    "frozenset([1])",
    "b'raw'",
    "1 + 2j",
    "len",
    "lambda: 1",
    "print",
    "{'b': 1}.items()",
    "Exception('e')",
    "ValueError",
    "...",
    "'half \\ud800'",
    "['\\udfff']",
    "[note]",
)
"""Values that are mostly only shown, because the store rejects nearly all of them."""

LEAVES: Final = (*NUMBERS, *TEXTS, *CONTAINERS)

_TEMPLATES: Final = (
    "{0}",
    "{name}",
    "{name}",
    "echo({0})",
    "echo(value={0})",
    "str({0})",
    "len({0})",
    "{0} + {1}",
    "{0}[0]",
    "[{0}, {1}]",
    "{{'k': {0}}}",
    "({0}, {1})",
    "f'<{{{name}}}>'",
    "f'{{({0})!r:>8}}'",
    "f'{{({0}):>6}}|'",
    "'%s' % {0}",
    "'{{}}!'.format({0})",
    "[item for item in {0}]",
    "sorted([3, 1, 2], key=lambda n: -n)",
    "{0} == {1}",
    "{0} in {1}",
    "not {0}",
    "{0} if {1} else {name}",
    "{0} and {1}",
    "isinstance({0}, str)",
    "int({0})",
    "1 / 0",
    "sum({0})",
    "max({0}, default=0)",
    "{0}.upper()",
    "{0}.get('k')",
    "{0}.missing",
    "({name} := {0})",
    "dict(k={0})",
    "tuple({0})",
    "repr({0})",
    "list(enumerate(['x', 'y']))",
    "', '.join(['x', 'y'])",
    "any([{0}])",
    "note({0})",
)


def expression(draw: Draw) -> str:
    """Return an expression whose value can be stored in a variable."""
    template = draw.of(_TEMPLATES)
    first = draw.of(LEAVES) if "{0}" in template else ""
    second = draw.of(LEAVES) if "{1}" in template else ""
    name = draw.of(NAMES) if "{name}" in template else ""
    return template.format(
        f"({first})" if " " in first else first, f"({second})" if " " in second else second, name=name
    )


def shown_expression(draw: Draw) -> str:
    """Return an expression whose value is only shown."""
    return draw.of(PASSING) if draw.of((False,) * 5 + (True,)) else expression(draw)
