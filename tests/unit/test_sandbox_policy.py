from __future__ import annotations

import ast
import json
import warnings
from pathlib import Path

import pytest
from RestrictedPython import compile_restricted_exec

from statek_sim.errors import SandboxViolation
from statek_sim.sandbox.compile import compile_block as check
from statek_sim.sandbox.policy import SandboxPolicy, survey
from tests.tables import table_test

POLICY = SandboxPolicy()
RECORDED = [
    entry["code"]
    for entry in json.loads((Path(__file__).parent / "samples" / "sandbox_recorded.json").read_text("utf-8"))
]


@table_test(
    ("source", "message"),
    [
        ("x = = 1", "invalid Python syntax: invalid syntax (<unknown>, line 1)"),
        ("eval('1')", "call to 'eval' is not allowed"),
        ("x = eval", "name 'eval' is not allowed"),
        ("x.__class__", "dunder attribute '__class__' is not allowed"),
        ("__name__", "dunder name '__name__' is not allowed"),
        ("import os", "import 'os' is not allowed"),
        ("import math.foo", "import 'math.foo' is not available in the sandbox"),
        ("from . import x", "relative imports are not allowed"),
        ("from math import _x", "import '_x' is not allowed"),
        ("from math import nothing", "import 'nothing' is not allowed"),
        ("x: int = 1", "('Line 1: AnnAssign statements are not allowed.',)"),
        ("return 1", "'return' outside function; ('<sandbox>', 1, 1, None, 1, 9)"),
    ],
)
def test_a_violation_is_worded_as_in_statek(source: str, message: str) -> None:
    with pytest.raises(SandboxViolation) as caught:
        check(source, POLICY)
    assert str(caught.value) == message


def test_source_is_measured_in_utf8_bytes() -> None:
    policy = SandboxPolicy(max_source_bytes=10)
    check("x = 'abcd'", policy)
    with pytest.raises(SandboxViolation, match=r"^source is 11 bytes; limit is 10$"):
        check("x = 'abó'\n", policy)


def test_nodes_are_counted_as_ast_walk_counts_them() -> None:
    source = "x = [1, 2, y.z[3:4]]\nprint(f'{x}', *x, **{})"
    nodes = sum(1 for _ in ast.walk(ast.parse(source)))
    check(source, SandboxPolicy(max_ast_nodes=nodes))
    with pytest.raises(SandboxViolation, match=rf"^source has {nodes} AST nodes; limit is {nodes - 1}$"):
        check(source, SandboxPolicy(max_ast_nodes=nodes - 1))


def test_a_hidden_tool_may_be_called_only_when_allowed() -> None:
    policy = SandboxPolicy(blocked_tools=frozenset({"drop_all"}))
    with pytest.raises(SandboxViolation, match=r"^tool 'drop_all' is not exposed to this job$"):
        check("drop_all(1)", policy)
    check("drop_all", policy)
    check(
        "drop_all(1)",
        SandboxPolicy(blocked_tools=frozenset({"drop_all"}), allowed_tools=frozenset({"drop_all"})),
    )


def test_imports_can_be_narrowed() -> None:
    with pytest.raises(SandboxViolation, match=r"^import 'math' is not allowed$"):
        check("import math", SandboxPolicy(allowed_imports=frozenset({"re"})))
    with pytest.raises(SandboxViolation, match=r"^import 'numpy' is not available in the sandbox$"):
        check("from numpy import array", SandboxPolicy(allowed_imports=frozenset({"numpy"})))


def test_one_private_name_waves_other_objections_through_as_in_statek() -> None:
    check("_x = 1\ny: int = 2", POLICY)
    with pytest.raises(SyntaxError, match="'return' outside function"):
        check("_x = 1\nreturn", POLICY)


def test_the_first_offence_in_the_source_is_the_one_named() -> None:
    with pytest.raises(SandboxViolation, match="call to 'open' is not allowed"):
        check("open(x.__class__)", POLICY)


def test_unrestricted_source_only_has_to_parse() -> None:
    unrestricted = SandboxPolicy(restricted=False)
    check("import os\nclass A: pass\nx.__dict__", unrestricted)
    with pytest.raises(SyntaxError, match="invalid syntax"):
        check("x = = 1", unrestricted)


def test_the_names_of_the_helpers_are_reserved() -> None:
    with pytest.raises(SandboxViolation, match=r"^name '_statek_tick' is reserved$"):
        check("_statek_tick = 1", POLICY)


@table_test("source", ["1" + "+1" * 400, "x" + ".a" * 400, "not " * 400 + "x", "1" + "+1" * 40_000])
def test_deep_nesting_is_refused_at_the_same_depth_everywhere(source: str) -> None:
    with pytest.raises(RecursionError, match=r"^maximum recursion depth exceeded$"):
        check(source, SandboxPolicy(max_ast_nodes=10**6))
    assert check("1" + "+1" * 100, POLICY).statements


def test_warnings_of_the_checkers_stay_inside() -> None:
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        check("print('x')\n'\\d'\n1 is 1\ndef f():\n    print(2)", POLICY)
    assert leaked == []


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_the_quick_check_passes_nothing_that_restrictedpython_rejects() -> None:
    for source in RECORDED:
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        if survey(tree).plain:
            assert compile_restricted_exec(tree, "<sandbox>").errors == (), source


def test_the_quick_check_spares_most_plain_code() -> None:
    assert survey(
        ast.parse("import math\nfor i in range(3):\n    print(f'{i}', math.sqrt(i), [x for x in y])")
    ).plain
    assert not survey(ast.parse("_x = 1")).plain
    assert not survey(ast.parse("def f(): return 1")).plain
