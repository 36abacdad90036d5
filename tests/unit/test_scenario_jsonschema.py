"""The published JSON Schema: it describes every key, and agrees with the loader about every sample."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from statek_sim.scenario.load import load_paths
from statek_sim.scenario.locate import json_schema, options_at
from statek_sim.scenario.tree import node_value, parse
from tests.tables import table_test

SAMPLES = Path(__file__).parent / "samples"
GOOD = sorted((SAMPLES / "good").glob("*.yaml"))
BAD = sorted((SAMPLES / "bad").glob("*.yaml"))

VALIDATOR = Draft202012Validator(json_schema())


def schema_accepts(path: Path) -> bool:
    root = parse(path.read_text())
    assert root is not None
    return bool(VALIDATOR.is_valid(node_value(root)))


def test_the_schema_is_a_valid_draft_2020_12_schema() -> None:
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_sample_is_good_for_both(path: Path) -> None:
    assert load_paths([path]).problems == ()
    assert schema_accepts(path)


@table_test("path", BAD, ids=lambda path: path.stem)
def test_a_bad_sample_is_bad_for_both(path: Path) -> None:
    assert load_paths([path]).problems != ()
    assert not schema_accepts(path)


def test_every_key_has_a_title_and_a_description_for_editors() -> None:
    keys = _keys(json_schema(), "")
    assert len(keys) > 100
    assert [path for path, key in keys if "title" not in key] == []
    assert [path for path, key in keys if "description" not in key] == []


def test_the_options_at_a_place_are_its_keys_or_values() -> None:
    limits = options_at(("scenarios", 0, "limits"))
    assert limits[0] == "max_turns"
    assert options_at(("scenarios", 3, "order")) == ("fifo", "newest", "shuffled")
    assert "contains" in options_at(("scenarios", 0, "expect_in", "1.4", "jobs", "main", "console"))
    assert options_at(("nowhere",)) == ()


def _keys(node: JsonValue, path: str) -> list[tuple[str, dict[str, JsonValue]]]:
    """Return every described key of the schema with its path."""
    found: list[tuple[str, dict[str, JsonValue]]] = []
    if isinstance(node, list):
        for inner in node:
            found += _keys(inner, path)
    if isinstance(node, dict):
        properties = node.get("properties")
        if node.get("type") == "object" and isinstance(properties, dict):
            found += [(f"{path}.{name}", key) for name, key in properties.items() if isinstance(key, dict)]
        for name, inner in node.items():
            found += _keys(inner, f"{path}.{name}")
    return found
