"""What commands write as JSON keeps to the schema that is published beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from statek_sim.cli import main
from statek_sim.compare.matrix import Row, Verdict, VersionMatrix
from statek_sim.compare.upgrade import comparison_json
from statek_sim.reporting.artifact import published, schema_named
from tools.conformance import merged

ONE = "scenarios:\n  - {id: one, title: One, agents: {w: {}}, script: {w: [{code: exit(1)}]}}\n"
TOOLS = (
    "scenarios:\n  - id: one\n    title: One\n    agents: {w: {chat_style: MARKDOWN, tools: [note]}}\n"
    "    script: {w: [{code: exit(1)}]}\n"
)


def exit_code(*arguments: object) -> int:
    """Run the command line and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def checked(name: str, text: str) -> Any:
    found = json.loads(text)
    jsonschema.Draft202012Validator(schema_named(name)).validate(found)
    assert found["schema"] == f"statek-sim/{name.replace('_', '-')}@1"
    return found


def test_every_schema_is_one_and_lets_nothing_unknown_through() -> None:
    for name in published():
        schema = schema_named(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert "schema" in schema["required"]


def test_whatever_names_a_schema_has_one_that_is_published() -> None:
    named = {
        name.replace("-", "_")
        for file in Path("statek_sim").rglob("*.py")
        for name in re.findall(r'"statek-sim[/-]([a-z-]+)[@/]1"', file.read_text("utf-8"))
    }
    # Files that people write have theirs from `statek-sim list schema`; others are read by nobody but this package.
    assert named - {"scenario", "policy", "baseline"} - {"evals_profile", "evals_baseline"} == {*published()}


@pytest.mark.parametrize(("text", "valid"), [(ONE, True), (ONE.replace("agents", "agnets"), False)])
def test_validation_keeps_to_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, valid: bool
) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert exit_code("validate", tmp_path / "a.yaml", "--json", "-") == (0 if valid else 2)
    found = checked("validation", capsys.readouterr().out)
    assert (found["valid"], found["problems"] == []) == (valid, valid)


def test_a_comparison_keeps_to_its_schema(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(TOOLS)
    assert exit_code("compare", "1.2.7", "1.4.2", file, "--json", tmp_path / "out.json") in {0, 1}
    found = checked("compare", (tmp_path / "out.json").read_text())
    assert found["upgrade"]["scenarios"] == 1


def test_a_calculation_of_memory_keeps_to_its_schema(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert exit_code("limits", "--card", "Mistral-7B-v0.3", "--free", "24000", "--json", out) == 0
    assert checked("vram", out.read_text())["cards"][0]["free"] == 24000


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("guards", ["guards", "--guard", "injection"]),
        ("metrics", ["metrics", "scenarios/agent-steps/steps.yaml"]),
    ],
)
def test_figures_of_agents_keep_to_their_schemas(tmp_path: Path, name: str, arguments: list[str]) -> None:
    assert exit_code(*arguments, "--json", tmp_path / "out.json") == 0
    checked(name, (tmp_path / "out.json").read_text())


def test_a_matrix_of_releases_keeps_to_its_schema_alone_and_merged_from_several_pythons() -> None:
    rows = (Row(scenario="one", verdict=Verdict.AGREE), Row(scenario="two", verdict=Verdict.DIFFERS))
    numbers: dict[str, Any] = comparison_json(
        None, [VersionMatrix(version="1.4.2", profile="1.4", python="3.11.7", rows=rows)]
    )
    assert checked("compare", json.dumps(numbers))["versions"]["1.4.2"]["differ"] == 1
    runs = [{"1.4.2": {"python": python, **numbers["versions"]["1.4.2"]}} for python in ("3.11", "3.13")]
    assert checked("compare", json.dumps(merged(runs)))["versions"]["1.4.2"]["pythons"]["3.13"]
