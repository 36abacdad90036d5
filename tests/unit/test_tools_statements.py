"""The list of normative statements, and what proves them."""

from __future__ import annotations

from dataclasses import dataclass

from tools.statements import Statement, coverage, load_statements


@dataclass(frozen=True)
class Proof:
    id: str
    proves: tuple[str, ...]


def test_the_statements_of_three_documents_are_numbered_without_gaps() -> None:
    statements = load_statements()
    for letter, document in (("H", "000"), ("J", "001"), ("E", "003")):
        own = [statement for statement in statements if statement.source == document]
        ids = [statement.id for statement in own if statement.id[0] not in "TLNS"]
        assert ids == [f"{letter}-{number:02d}" for number in range(1, len(ids) + 1)]
    assert 70 <= len(statements) <= 400


def test_a_statement_is_one_sentence_that_no_other_repeats() -> None:
    statements = load_statements()
    texts = [statement.text for statement in statements]
    assert all(text.endswith(".") and len(text) <= 120 for text in texts)
    assert len({text.casefold() for text in texts}) == len(texts)
    assert len({statement.id for statement in statements}) == len(statements)


def test_coverage_tells_proven_missing_and_unknown_apart() -> None:
    statements = [Statement(id=name, source="000", section="s", text="t") for name in ("H-01", "H-02")]
    found = coverage(statements, [Proof("one", ("H-01", "H-01")), Proof("two", ("H-01", "H-99"))])
    assert found.proofs == {"H-01": ["one", "two"], "H-02": []}
    assert (found.missing, found.unknown) == (["H-02"], [("two", "H-99")])


def test_the_statements_about_tool_calling_agents_are_in_order_by_letter() -> None:
    ids = [statement.id for statement in load_statements() if statement.id[0] in "TLNS"]
    assert ids == sorted(ids, key=lambda one: ("TLNS".index(one[0]), int(one[2:])))


def test_evals_prove_the_statements_of_the_benchmark() -> None:
    by_evals = [one.id for one in load_statements() if one.by == "evals"]
    assert by_evals == [f"B-{number:02d}" for number in range(1, 8)]
