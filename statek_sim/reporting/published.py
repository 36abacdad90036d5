"""The JSON Schemas that are published beside the reports, by name."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def published() -> tuple[str, ...]:
    """Return the names of all schemas of this package: `report` for `report_schema.json`."""
    files = (file.name for file in resources.files("statek_sim.reporting").iterdir())
    return tuple(sorted(name.removesuffix("_schema.json") for name in files if name.endswith("_schema.json")))


def schema_named(name: str) -> dict[str, Any]:
    """Return a schema, which follows draft 2020-12."""
    text = (resources.files("statek_sim.reporting") / f"{name}_schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
