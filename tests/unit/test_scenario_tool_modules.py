"""`statek-sim validate` looks for the modules of tools without running them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from statek_sim.scenario.load import load_or_fail, load_paths
from statek_sim.scenario.tool_modules import missing_tools
from tests.tables import table_test


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_tools").mkdir()
    (tmp_path / "shop_tools" / "__init__.py").write_text("raise RuntimeError('this ran')\n")
    (tmp_path / "shop_tools" / "claims.py").write_text(
        "def claim(): ...\nclass Desk:\n    x = 1\nfrom os import path as way\n"
    )
    (tmp_path / "shop_tools" / "all_of.py").write_text("from shop_tools.claims import *\n")
    return tmp_path


@table_test(
    ("tool", "problem"),
    [
        ("shop_tools.claims:claim", None),
        ("shop_tools.claims:Desk.open", None),
        ("shop_tools.claims:way", None),
        ("shop_tools.all_of:whatever", None),
        ("math:sqrt", None),
        ("shop_tools.claims:clam", "module 'shop_tools.claims' has no 'clam'. Did you mean 'claim'?"),
        (
            "shop_tools.clams:claim",
            "module 'shop_tools.clams' not found in the current folder or on Python's path",
        ),
        (
            "shop_tolls:claim",
            "module 'shop_tolls' not found in the current folder or on Python's path",
        ),
    ],
)
@table_test(
    "place",
    [
        "agents: {{worker: {{tools: ['{0}']}}}}",
        "agents: {{worker: {{}}}}\n    script: {{worker: [{{call: '{0}'}}]}}",
        "engine: agent\n    agents:\n      worker:\n        harness:\n          reader: '{0}'",
        "engine: agent\n    agents: {{worker: {{harness: {{guards: [\n      '{0}']}}}}}}",
        "engine: agent\n    agents: {{worker: {{harness: {{gates: [\n      '{0}']}}}}}}",
        "engine: agent\n    agents: {{worker: {{harness: {{watchers: [\n      '{0}']}}}}}}",
        "engine: agent\n    agents: {{worker: {{harness: {{\n      compactor: '{0}'}}}}}}",
        "engine: agent\n    agents: {{worker: {{}}}}\n    tools:\n      look: {{call: '{0}'}}",
    ],
)
def test_a_name_that_is_not_there_is_a_problem_of_its_scenario(
    here: Path, tool: str, problem: str | None, place: str
) -> None:
    file = here / "a.yaml"
    file.write_text(f"scenarios:\n  - id: one\n    title: One\n    {place.format(tool)}\n")
    found = [str(one) for one in missing_tools(load_or_fail([file]))]
    line = file.read_text()[: file.read_text().index(tool)].count("\n") + 1
    assert found == ([] if problem is None else [f"{file}:{line}: scenario 'one': {tool!r}: {problem}"])
    assert "shop_tools" not in sys.modules


def test_what_the_defaults_of_a_file_say_is_shown_there(here: Path) -> None:
    file = here / "a.yaml"
    file.write_text(
        "defaults:\n  agents:\n    worker: {tools: [nowhere:x]}\nscenarios:\n  - id: one\n    title: One\n"
        "    agents: {worker: {model: gpt-4o}}\n"
    )
    (found,) = missing_tools(load_or_fail([file]))
    assert (found.line, "nowhere" in found.message) == (3, True)


def test_parameters_that_are_no_json_schema_are_a_problem_with_their_line(here: Path) -> None:
    file = here / "a.yaml"
    file.write_text(
        "scenarios:\n  - id: one\n    title: One\n    engine: agent\n    agents: {worker: {tools: [look]}}\n"
        "    tools:\n      look:\n        result: here\n        parameters: {type: objct}\n"
    )
    (found,) = load_paths([file]).problems
    assert found.line == 9
    assert "tool 'look': parameters['type']: invalid JSON Schema: 'objct' is not valid" in found.message
