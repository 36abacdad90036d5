"""Ways out of the bounds that are closed: none of them leads to the budget or to the helpers that charge it.

`SAME` are refused by STATEK too, in the same words. STATEK lets the others pass: it has no bounds that they could lift.
"""

from __future__ import annotations

import gc
import warnings

import pytest

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from tests.tables import table_test
from tests.unit.sandbox_session import Session

PRIVATE = "_private = 1\n"
"""One private name waves every objection of RestrictedPython through, as in STATEK."""

ENDLESS = "\nn = 0\nwhile n < 3_000: n += 1"
SAME = {
    "(x for x in [1]).gi_frame": '"gi_frame" is a restricted name',
    "import string": "import 'string' is not allowed",
    "from operator import attrgetter": "import 'attrgetter' is not allowed",
    "from functools import partial": "import 'partial' is not allowed",
    "import operator\noperator.methodcaller('x')": "attribute 'operator.methodcaller' is not allowed",
    "ValueError(1).__traceback__": "dunder attribute '__traceback__' is not allowed",
    PRIVATE + "ValueError(1).__traceback__": "dunder attribute '__traceback__' is not allowed",
    PRIVATE + "__builtins__": "dunder name '__builtins__' is not allowed",
    "match 1:\n  case int(): pass": "Match statements are not allowed",
}
RESERVED = [
    "def f(_statek_tick): pass",
    "lambda _statek_tick: 0",
    "def f(*_statek_tick): pass",
    "def f(*, _statek_tick): pass",
    "def f(**_statek_tick): pass",
    "def _statek_tick(*a): return True",
    "import math as _statek_tick",
    "from math import sin as _statek_tick",
    "try: pass\nexcept Exception as _statek_tick: pass",
    "for _statek_tick in [1]: pass",
    "[0 for _statek_tick in [1]]",
    "(_statek_tick := 1)",
    "del _statek_tick",
    "def f():\n  global _statek_tick",
    "def f():\n  def g():\n    nonlocal _statek_tick",
    "class _statek_tick: pass",
    "async def _statek_tick(): pass",
    "match 1:\n  case _statek_tick: pass",
    "match [1]:\n  case [*_statek_tick]: pass",
    "match {}:\n  case {**_statek_tick}: pass",
    "iter([1])._statek_tick",
    "map(str, [1])._statek_source",
    "(x for x in [1])._statek_budget.reset()",
    "import re\nre.compile('a')._statek_budget.reset()",
    "print._statek_function",
]
FRAMES = [
    "(x for x in [1]).gi_frame",
    "async def f(): pass\nf().cr_frame.f_globals",
    "async def f(): yield\nf().ag_frame",
    "ValueError(1).with_traceback(None).tb_frame",
    "match (lambda: 0):\n  case Exception(__globals__=g): pass",
    "match (x for x in [1]):\n  case Exception(gi_frame=g): pass",
    "match iter([1]):\n  case Exception(_statek_tick=g): pass",
]


@table_test(("code", "refusal"), SAME.items())
def test_what_statek_refuses_is_refused_in_its_words(code: str, refusal: str) -> None:
    assert refusal in Session().shown(code)[-1]


@table_test("code", RESERVED)
@table_test("before", ["", PRIVATE], ids=["plain", "waved through"])
def test_nothing_can_take_the_place_of_a_helper_or_read_what_leads_to_one(code: str, before: str) -> None:
    shown = Session().shown(before + code)[-1]
    assert "SandboxViolation" in shown
    assert "is reserved" in shown or "_statek_" in shown


@table_test("code", FRAMES)
def test_frames_stay_closed_to_code_that_is_waved_through(code: str) -> None:
    assert "is not allowed" in Session().shown(PRIVATE + code)[-1]


@table_test("start", ["", PRIVATE, "def f(n=1): return n\n", "import re\np = re.compile('a')\n"])
def test_an_endless_loop_is_stopped_whatever_was_said_before(start: str) -> None:
    with pytest.raises(BudgetExceeded):
        Session(budget=ExecutionBudget(loop_iterations=1_000)).run(start + ENDLESS)


@table_test(
    "code",
    [
        "'{0.__globals__[json].codecs.sys.modules[os].environ[KEY]}'.format(json.loads)",
        "'{x.__class__}'.format_map({'x': 1})",
        "'{:{0.__class__}}'.format(1)",
        "'{0[a.b].__class__}'.format({'a.b': 1})",
        "'{0.gi_frame}'.format(x for x in [1])",
        "'{0._statek_source}'.format(map(str, [1]))",
        "str.format('{0.__class__}', 1)",
        "str.format_map('{x.__class__}', {'x': 1})",
        "list(map('{0.__class__}'.format, [1]))",
        "list(itertools.starmap(str.format, [('{0.__class__}', 1)]))",
        "functools.reduce(str.format, [1], '{0.__class__}')",
        "re.sub('a', '{0.__class__}'.format, 'a')",
        "sorted([1], key='{0.__class__}'.format)",
        "json.dumps(1j, default='{0.__class__}'.format)",
        "f = 'x'.format\nf = '{0.__class__}'.format\nf(1)",
        PRIVATE + "'{0.__class__}'.format(1)",
    ],
)
def test_format_reads_no_attribute_that_the_code_may_not_read_itself(code: str) -> None:
    shown = Session().shown(f"import functools, itertools, json, re\n{code}")[-1]
    assert shown.startswith(("SandboxViolation: dunder attribute", "SandboxViolation: attribute"))


def test_a_pattern_gives_no_format_method_either() -> None:
    code = PRIVATE + "match '{0.__class__}':\n  case str(format=f): f(1)"
    assert Session().shown(code)[-1] == "SandboxViolation: attribute 'format' is not allowed"


@table_test(
    ("code", "text"),
    [
        ("'{0.real}'.format(1)", "1"),
        (
            "'{0[a.__b__]}{}'.format({'a.__b__': 1})",
            "ValueError: cannot switch from manual field specification to",
        ),
        ("'{0[a.__b__]}'.format({'a.__b__': 1})", "1"),
        ("'{:>{width}}'.format('x', width=3)", "  x"),
        ("'{'.format(1)", "ValueError: Single '{' encountered in format string"),
        ("'{}'.format()", "IndexError: Replacement index 0 out of range for positional args tuple"),
        ("repr('x'.format)", "<built-in method format of str object at 0x...>"),
        ("', '.join(map('{:03}'.format, [1, 2]))", "001, 002"),
    ],
)
def test_format_is_that_of_python_otherwise(code: str, text: str) -> None:
    assert Session().shown(code)[-1].startswith(text)


@pytest.mark.parametrize(
    "text", ["'{0.append}'.format([])", "'%s' % [].append", "'{x}'.format_map({'x': [].append})"]
)
def test_formatted_text_shows_no_memory_addresses(text: str) -> None:
    assert Session().run(text) == ["<built-in method append of list object at 0x...>"]


def test_a_coroutine_that_nobody_waits_for_makes_no_warning() -> None:
    session = Session()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        session.run(PRIVATE + "async def f(): return 1\nc = f()\nf()\nkept = [f() for i in range(3)]")
        session.budget.close_coroutines()
        session.names.clear()
        gc.collect()
    assert [str(one.message) for one in warned] == []
