"""What users saw before the redesign is what they see now, but for the differences listed in `changes/*.toml`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from tools.freeze import surface, traces

HERE: Final = Path(__file__).resolve().parent


def frozen(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def changes() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every listed change with the name of its table."""
    for file in sorted(HERE.glob("changes/*.toml")):
        for kind, entries in tomllib.loads(file.read_text(encoding="utf-8")).items():
            for entry in entries:
                yield kind, entry


def changed(table: str, name: str) -> bool:
    """Whether a change of `name` is listed; `*` matches any characters, and brackets match themselves."""
    patterns = [pattern for kind, entry in changes() if kind == table for pattern in entry["names"]]
    return any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)


def differences(table: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        name: (value, now.get(name, "gone"))
        for name, value in before.items()
        if now.get(name) != value and not changed(table, name)
    }


def test_every_trace_is_the_same_unless_its_change_is_listed() -> None:
    assert differences("traces", frozen("traces"), traces()) == {}


def test_commands_schemas_and_the_starter_folder_are_the_same_unless_their_change_is_listed() -> None:
    before, now = frozen("surface"), surface()
    for table in ("commands", "schemas", "starter"):
        assert differences(table, before[table], now[table]) == {}


def test_every_listed_change_has_a_reason() -> None:
    assert [entry["names"] for _, entry in changes() if not entry["reason"].strip()] == []
