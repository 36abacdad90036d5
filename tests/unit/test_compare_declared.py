"""The file of declared differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.compare.matrix import load_declarations
from statek_sim.errors import BadInput
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import builtin_suites


def written(folder: Path, text: str) -> Path:
    path = folder / "declared.yaml"
    path.write_text(text)
    return path


def test_declared_fields_are_found_by_scenario_and_version(tmp_path: Path) -> None:
    path = written(tmp_path, "- {scenario: one, fields: [ledger], versions: ['1.4.2'], reason: why not}\n")

    declarations = load_declarations(path)

    assert declarations.of("one", "1.4.2")["ledger"].reason == "why not"
    assert declarations.of("one", "1.2.7") == {}
    assert declarations.of("two", "1.4.2") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}\n", "declared.yaml:1: expected a list of declared differences$"),
        ("- {scenario: one}\n", "declared.yaml:1: a declared difference has exactly the keys "),
        (
            "- {scenario: one, fields: [], versions: ['1.4.2'], reason: r}\n",
            "declared.yaml:1: fields is a list of names$",
        ),
        (
            "\n- {scenario: one, fields: [jobs.*], versions: ['1.4.2'], reason: r}\n",
            r"declared.yaml:2: fields: 'jobs.\*' is a pattern; write every name out$",
        ),
        (
            "- {scenario: one, fields: [ledger], versions: ['1.4.2'], reason: ' '}\n",
            "declared.yaml:1: scenario and reason are texts$",
        ),
    ],
)
def test_a_declaration_that_says_too_little_or_too_much_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        load_declarations(written(tmp_path, text))


def test_the_built_in_declarations_are_about_built_in_scenarios() -> None:
    known = {scenario.id for scenario in load_or_fail([builtin_suites()])}

    assert {declaration.scenario for declaration in load_declarations().all} <= known
