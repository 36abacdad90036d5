"""The list of normative statements, and which scenarios prove them."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.cli import main
from statek_sim.cli.inputs import proven, proven_by_all
from statek_sim.errors import BadScenario
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.statements import Statement, coverage, load_statements, unknown_proofs
from tests.evals.test_writing import GOOD
from tests.tables import table_test

STATEMENTS = Path(__file__).parents[2] / "scenarios" / "statements.yaml"

ONE = '- {id: H-01, source: "000", section: Limits, text: Turns are limited.}\n'


def test_the_statements_of_three_documents_are_numbered_without_gaps() -> None:
    statements = load_statements(STATEMENTS)
    for letter, document in (("H", "000"), ("J", "001"), ("E", "003")):
        own = [statement for statement in statements if statement.document == document]
        ids = [statement.id for statement in own if statement.id[0] not in "TLNS"]
        assert ids == [f"{letter}-{number:02d}" for number in range(1, len(ids) + 1)]
    assert 70 <= len(statements) <= 400


def test_a_statement_is_one_sentence_that_no_other_repeats() -> None:
    texts = [statement.text for statement in load_statements(STATEMENTS)]
    assert all(text.endswith(".") and len(text) <= 120 for text in texts)
    assert len({text.casefold() for text in texts}) == len(texts)


def test_coverage_tells_proven_missing_and_unknown_apart(tmp_path: Path) -> None:
    text = "scenarios:\n" + "".join(
        f"  - {{id: {name}, title: t, agents: {{a: {{}}}}, proves: [{proves}]}}\n"
        for name, proves in (("one", "H-01, H-01"), ("two", "H-01, H-99"))
    )
    (tmp_path / "file.yaml").write_text(text)
    statements = [
        Statement(id=statement_id, document="000", section="s", text="t") for statement_id in ("H-01", "H-02")
    ]
    found = coverage(statements, load_or_fail([tmp_path]))
    assert dict(found.proven) == {"H-01": ("one", "two")}
    assert (found.missing, found.unknown) == (("H-02",), (("two", "H-99"),))
    assert not found.complete


@table_test(
    ("text", "problem"),
    [
        (ONE + ONE, "2: duplicate id 'H-01', first at line 1"),
        (ONE.replace("text", "txt"), r"1: missing key 'text' in \[0\]\n\S+:1: unknown key 'txt' in \[0\]"),
        (ONE.replace('"000"', "000"), r'1: \[0\].source: expected text, got 0; write "0" in quotes'),
        (ONE.replace("H-01", "H1"), r"1: \[0\].id: expected text that matches .*, got 'H1'"),
        ("statements: []\n", "1: expected a list of statements"),
        ("- [\n", "2: not valid YAML: .*"),
    ],
)
def test_a_mistake_in_the_list_is_reported_at_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "statements.yaml"
    path.write_text(text)
    with pytest.raises(BadScenario, match=rf"^\S+:{problem}$"):
        load_statements(path)


def test_a_missing_list_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match=r"^\S+nowhere.yaml: no such file or folder$"):
        load_statements(tmp_path / "nowhere.yaml")


def test_the_statements_about_tool_calling_agents_are_in_order_by_letter() -> None:
    ids = [statement.id for statement in load_statements(STATEMENTS) if statement.id[0] in "TLNS"]
    assert ids == sorted(ids, key=lambda one: ("TLNS".index(one[0]), int(one[2:])))


def test_what_evals_prove_is_no_matter_of_runs_of_scenarios() -> None:
    by_evals = [one.id for one in load_statements(STATEMENTS) if one.by == "evals"]
    assert by_evals == [f"B-{number:02d}" for number in range(1, 8)]
    statements, found = proven(load_or_fail([STATEMENTS.parent]))
    assert found.complete
    assert not {one.id for one in statements} & set(by_evals)


def test_evals_prove_the_statements_of_the_benchmark() -> None:
    _, found, wrong = proven_by_all([], [STATEMENTS.parent / "evals"])
    assert not wrong
    assert found.proven["B-05"] == ("recover-from-api-error",)
    assert [one for one in found.missing if one.startswith("B-")] == []


def test_an_eval_that_does_not_tell_right_from_wrong_proves_nothing(tmp_path: Path) -> None:
    text = GOOD.replace("tier: easy", "tier: easy\n    proves: [B-01, B-99]")
    looks = 'plan: [{call: look, with: {name: "{name}"}}, {answer: X-1}]'
    (tmp_path / "good.yaml").write_text(text)
    _, found, wrong = proven_by_all([], [tmp_path])
    assert (found.proven["B-01"], found.unknown, wrong) == (("one",), (("one", "B-99"),), [])
    (tmp_path / "good.yaml").write_text(text.replace("plan: [{answer: X-1}]", looks))
    _, found, wrong = proven_by_all([], [tmp_path])
    assert "B-01" in found.missing
    assert wrong
    assert all("passes, which it should not" in line for line in wrong)


def test_a_proof_of_what_nobody_has_stated_is_a_problem_of_its_line(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "scenarios:\n  - id: one\n    title: One\n    proves: [H-01,\n      Z-99]\n    agents: {worker: {}}\n"
    )
    found = [str(problem) for problem in unknown_proofs(load_statements(STATEMENTS), load_or_fail([file]))]
    assert found == [
        f"{file}:5: scenario 'one': proves Z-99, which is no statement; `statek-sim list suites --coverage` lists them"
    ]
    with pytest.raises(SystemExit) as ended:
        main(["validate", str(file)])
    assert ended.value.code == 2
