from __future__ import annotations

import pytest

from statek_sim.runtime.agents.warmup_source import parse_warmup
from statek_sim.runtime.state.chat_log import CallSpec, CodeBlock
from tests.tables import table_test


def parse(source: str | list[str] | None) -> tuple[CodeBlock, ...]:
    return parse_warmup(source, bind_assignments=False)


def test_nothing_has_no_blocks() -> None:
    assert parse(None) == ()
    assert parse("  \n") == ()
    assert parse([" ", "\n"]) == ()


@table_test(
    ("source", "codes"),
    [
        ("a\n# ----------\nb", ["a", "b"]),
        ("a\n  #--------------  \n\nb", ["a", "b"]),
        ("a\n# ---------\nb", ["a\n# ---------\nb"]),
        ("a\n# ---------- part two\nb", ["a\n# ---------- part two\nb"]),
        ("# ----------\na", ["# ----------\na"]),
        ("a\n# ----------\n# ----------\nb", ["a", "# ----------\nb"]),
        ("s = '''\n# ----------\n'''", ["s = '''", "'''"]),
    ],
)
def test_a_line_of_ten_dashes_between_lines_separates_blocks(source: str, codes: list[str]) -> None:
    assert [block.code for block in parse(source)] == codes


def test_the_strings_of_a_sequence_are_blocks_as_they_are() -> None:
    assert parse([" a ", "", "b\n# ----------\nc"]) == (CodeBlock("a"), CodeBlock("b\n# ----------\nc"))


def test_tool_lines_leave_the_code_and_are_numbered_through_all_blocks() -> None:
    first = "x = 1\nf(1, 'a', k=[2], who=owner) #STATEK: as tool"
    second = "mod.g(name)#STATEK: as tool or not\ny"
    assert parse(f"{first}\n# ----------\n{second}") == (
        CodeBlock("x = 1", (CallSpec("STATEK-001", "f", [1, "a"], {"k": [2], "who": "owner"}),)),
        CodeBlock("y", (CallSpec("STATEK-002", "g", ["name"]),)),
    )


def test_a_marker_with_a_space_is_an_ordinary_comment() -> None:
    assert parse("f() # STATEK: as tool\n# STATEK: hidden = True") == (
        CodeBlock("f() # STATEK: as tool\n# STATEK: hidden = True"),
    )


def test_a_block_takes_its_metadata_along() -> None:
    _, hidden = parse(["x", "#STATEK: hidden = True\nx"])
    assert hidden.metadata == {"hidden": True}


def test_only_the_literal_true_hides_a_block() -> None:
    hidden = [parse(f"#STATEK: hidden = {value}\nx")[0].hidden for value in ("True", "1", "'True'", "False")]
    assert hidden == [True, False, False, False]


def test_metadata_lines_hold_scalar_literals() -> None:
    (block,) = parse("  #STATEK: a = 'x' \n#STATEK:b=-1.5\n#STATEK: c = None\nx")
    assert block == CodeBlock("x", (), {"a": "x", "b": -1.5, "c": None})


@table_test(
    ("source", "message"),
    [
        ("#STATEK: k = [1]", r"^Invalid warmup metadata value for 'k': '\[1\]'$"),
        ("#STATEK: k = x", r"^Invalid warmup metadata value for 'k': 'x'$"),
        ("#STATEK: what", r"^Invalid warmup metadata line: '#STATEK: what'$"),
        ("#STATEK: as tool", r"^Invalid warmup metadata line: '#STATEK: as tool'$"),
        ("x #STATEK: as tool", r"^Not a function call: 'x'$"),
        ("f()() #STATEK: as tool", r"^Unsupported function expression: 'f\(\)\(\)'$"),
        ("f(a.b) #STATEK: as tool", r"^malformed node or string on line 1: <ast\.Attribute object>$"),
        ("f(x + 1) #STATEK: as tool", r"^malformed node or string on line 1: <ast\.Name object>$"),
        ("f(g()) #STATEK: as tool", r"^malformed node or string on line 1: <ast\.Call object>$"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_value_error(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(source)


def test_an_assignment_does_not_parse_in_statek_itself() -> None:
    with pytest.raises(SyntaxError, match=r"^invalid syntax.*line 1\)$"):
        parse("claim = fetch_next_item(owner) #STATEK: as tool")


def test_the_documented_assignment_binds_the_result() -> None:
    source = "claim = fetch_next_item(owner) #STATEK: as tool\nif claim is None:\n    print('none')"
    (block,) = parse_warmup(source, bind_assignments=True)
    assert block.code == "if claim is None:\n    print('none')"
    assert block.tool_calls == (CallSpec("STATEK-001", "fetch_next_item", ["owner"], {}, "claim"),)


def test_an_assignment_can_unpack_and_a_bare_call_binds_nothing() -> None:
    source = "who, item = claim(1) #STATEK: as tool\nlog('x') #STATEK: as tool"
    (block,) = parse_warmup(source, bind_assignments=True)
    assert [call.bind for call in block.tool_calls] == [("who", "item"), None]


@table_test("line", ["a.b = f()", "a = b = f()", "a += f()", "a: int = f()", "a, b.c = f()", "f("])
def test_other_assignments_stay_syntax_errors(line: str) -> None:
    with pytest.raises(SyntaxError, match=r"\(<unknown>, line 1\)$"):
        parse_warmup(f"{line} #STATEK: as tool", bind_assignments=True)


def test_an_assignment_of_something_else_than_a_call_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Not a function call: 'a = 1'$"):
        parse_warmup("a = 1 #STATEK: as tool", bind_assignments=True)
