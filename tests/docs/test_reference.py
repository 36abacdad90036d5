"""The reference pages say what the code says."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import statek_sim
from pytest_statek.options import INI_KEYS
from statek_sim.cli.app import HEADINGS
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.scenario.locate import json_schema
from statek_sim.scenario.schema import Budget
from tools.reference import DOCS, PAGES, PUBLIC, commands, python_api, scenario_format


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_today_makes_of_it(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == PAGES[name](), (
        f"docs/{name} is not up to date: run `make docs`"
    )


def test_every_fixture_and_every_public_name_is_on_the_page() -> None:
    page = python_api()
    modules = [statek_sim, *(import_module(f"statek_sim.{name}") for name in PUBLIC)]
    assert [name for module in modules for name in module.__all__ if f"### `{name}" not in page] == []
    for fixture in ("llm", "runtime", "clock", "queue", "app", "llm_server", "cassette"):
        assert f"### `statek_{fixture}: " in page


def test_every_field_of_every_part_is_on_the_page() -> None:
    page = scenario_format()
    schema: Any = json_schema()
    parts: dict[str, Any] = schema["$defs"]
    fields = {field for part in parts.values() for field in part.get("properties", ())}
    assert len(fields) > 100
    assert [field for field in sorted(fields) if f"| `{field}` |" not in page] == []


def test_every_command_and_every_setting_is_on_the_page() -> None:
    page = commands()
    named = [name for names in HEADINGS.values() for name in names]
    assert [name for name in named if f"## `statek-sim {name}" not in page] == []
    assert [key for key in INI_KEYS if f"| `{key}` |" not in page] == []


def test_the_budget_in_the_format_is_the_budget_in_force() -> None:
    in_force = ExecutionBudget()
    assert {name: getattr(Budget(), name) for name in Budget.model_fields} == {
        name: getattr(in_force, name) for name in Budget.model_fields
    }
