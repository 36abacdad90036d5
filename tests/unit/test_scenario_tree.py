"""YAML as a tree: YAML 1.2 values and exact spans."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.scenario import tree
from statek_sim.scenario.edit import block, flow
from statek_sim.scenario.tree import find, node_value, parse
from statek_sim.values import JSON
from tests.tables import table_test

SAMPLES = Path(__file__).parent / "samples"


def value_of(text: str) -> JSON:
    root = parse(text)
    assert root is not None
    return node_value(root)


@table_test(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("1.2", 1.2),
        ("'1.2'", "1.2"),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("12:30", "12:30"),
        ("1e3", 1000.0),
        ("-.5", -0.5),
        ("~", None),
        ("True", True),
        ("'null'", "null"),
        ("-", [None]),
        ("+", "+"),
        ("1.2.3", "1.2.3"),
        ("|\n a\n b\n", "a\nb\n"),
    ],
)
def test_values_follow_the_core_schema_of_yaml_1_2(text: str, value: JSON) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


def test_a_node_knows_its_place_and_its_span() -> None:
    text = "# é 😀\na:\n  b: [1, 'ż']  # why\n"
    root = parse(text)
    assert root is not None
    node, depth = find(root, ("a", "b", 1, "nothing"))
    assert (text[node.start : node.end], node.line, node.column, depth) == ("'ż'", 3, 10, 3)


def test_without_libyaml_the_same_files_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(SAMPLES.rglob("*.yaml"))
    fast = [parse(file.read_text()) for file in files]
    monkeypatch.setattr(tree, "_LOADER", yaml.SafeLoader)
    assert [parse(file.read_text()) for file in files] == fast


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_what_is_written_on_one_line_reads_back(value: JSON) -> None:
    assert value_of(flow(value)) == value


@given(json_values)
def test_what_is_written_below_a_key_reads_back(value: JSON) -> None:
    assert value_of("key:" + block(value, indent=2, column=4, spread=True)) == {"key": value}
