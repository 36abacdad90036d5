from __future__ import annotations

import ast

from statek_sim.sandbox.compile import bound_names
from tests.tables import table_test


@table_test(
    ("source", "own", "as_global"),
    [
        ("x = y = z", ("x", "y"), ()),
        ("a, (b, *c) = d", ("a", "b", "c"), ()),
        ("x[i] = y.z", (), ()),
        ("x += 1", ("x",), ()),
        ("del x, y.z", ("x",), ()),
        ("for i, j in k: m = 1", ("i", "j", "m"), ()),
        ("with a as b, c as (d, e): pass", ("b", "d", "e"), ()),
        ("import a.b, c as d", ("a", "d"), ()),
        ("from a import b, c as d", ("b", "d"), ()),
        ("try: x = 1\nexcept E as e: y = 2\nelse: z = 3\nfinally: w = 4", ("x", "e", "y", "z", "w"), ()),
        ("def f(a, b=(c := 1)):\n  d = 2\n  def g(): global h", ("f", "c"), ("h",)),
        ("class A(b := C):\n  d = 1", ("A", "b"), ()),
        ("f(lambda x: (y := x))", (), ()),
        ("if (n := 1): pass", ("n",), ()),
        ("[(z := i) for i in j]", (), ("z",)),
        ("def f():\n  [(z := i) for i in j]", ("f",), ()),
        ("match a:\n  case {'k': b, **c}: pass\n  case [d, *e] | f: pass", ("b", "c", "d", "e", "f"), ()),
        ("print(x)", (), ()),
    ],
)
def test_names_that_a_statement_binds(source: str, own: tuple[str, ...], as_global: tuple[str, ...]) -> None:
    found, found_global = bound_names(ast.parse(source).body[0])
    assert (set(found), found_global) == (set(own), as_global)
