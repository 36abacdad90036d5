from __future__ import annotations

import pytest

from statek_sim.errors import SandboxViolation
from statek_sim.sandbox.compile import compile_block
from statek_sim.sandbox.policy import SandboxPolicy
from tests.unit.sandbox_session import Session

POLICY = SandboxPolicy()
UNRESTRICTED = SandboxPolicy(restricted=False)


def test_statements_say_what_they_are() -> None:
    block = compile_block("x = 1\nprint(x)\nx\nx.print(1)", POLICY)
    assert block.source.startswith("x = 1")
    assert [(s.is_expression, s.is_print, s.binds) for s in block.statements] == [
        (False, False, ("x",)),
        (True, True, ()),
        (True, False, ()),
        (True, False, ()),
    ]


def test_equal_source_and_policy_are_compiled_once() -> None:
    assert compile_block("x = 41", POLICY) is compile_block("x = 41", SandboxPolicy())
    assert compile_block("x = 41", POLICY) is not compile_block("x = 41", UNRESTRICTED)


def test_what_the_policy_forbids_is_not_compiled() -> None:
    with pytest.raises(SandboxViolation, match="import 'os' is not allowed"):
        compile_block("import os", POLICY)


def test_an_expression_leaves_its_value_behind() -> None:
    session = Session()
    (statement,) = compile_block("[1, 'x']", POLICY).statements
    exec(statement.code, session.names)
    assert session.names["_statek_result"] == [1, "x"]


def test_without_restrictions_a_statement_that_cannot_compile_fails_when_its_turn_comes() -> None:
    session = Session(UNRESTRICTED)
    with pytest.raises(SyntaxError) as caught:
        session.run("print('before')\nreturn 1")
    assert session.console == ["before"]
    assert str(caught.value) == "'return' outside function (<string>, line 2)"


def test_without_restrictions_classes_and_patterns_work() -> None:
    code = """
class Point:
    def __init__(self, x):
        self.x = x
match Point(3):
    case Point(x=value) if value > 2:
        print(value)
d = {'n': 1}
d['n'] += 2
print(d, hasattr(d, 'keys'))
"""
    assert Session(UNRESTRICTED).run(code) == ["3", '{"n":3} True']


def test_code_does_not_inherit_our_future_imports() -> None:
    with pytest.raises(NameError, match="name 'unknown' is not defined"):
        Session().run("def f(x: unknown): pass")
