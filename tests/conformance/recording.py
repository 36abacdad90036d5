"""Records of the real package, as files: one line per fact, so that a new release shows as a readable diff."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.conformance.facts import Facts

DIRECTORY: Final = Path(__file__).resolve().parent / "recorded"

PROFILES: Final = {"1.2.7": "1.2", "1.4.2": "1.4"}
"""The releases that are recorded, and our profile of each."""


@cache
def recorded(version: str) -> dict[str, Facts]:
    """Return the facts of every job on the real package of `version`."""
    record: dict[str, Any] = json.loads((DIRECTORY / f"{version}.json").read_text(encoding="utf-8"))
    assert record["header"]["statek"] == version
    jobs: dict[str, Facts] = record["jobs"]
    return jobs


def write(version: str, header: dict[str, str], jobs: dict[str, Facts]) -> Path:
    """Write a record and return where it is."""
    path = DIRECTORY / f"{version}.json"
    path.write_text(_text({"header": header, "jobs": jobs}, depth=5) + "\n", encoding="utf-8")
    return path


def _text(value: Any, *, depth: int, indent: int = 0) -> str:
    """Return JSON with one line per member of an object down to `depth`, and one per item of a list."""
    if depth == 0 or not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner, outer = "\n" + " " * (indent + 1), "\n" + " " * indent
    if isinstance(value, dict):
        members = [
            f"{json.dumps(key)}: {_text(item, depth=depth - 1, indent=indent + 1)}"
            for key, item in value.items()
        ]
        return "{" + inner + ("," + inner).join(members) + outer + "}"
    members = [_text(item, depth=0) for item in value]
    return "[" + inner + ("," + inner).join(members) + outer + "]"


def fields(facts: Facts) -> dict[str, Any]:
    """Return the facts of a case by field: those of its jobs as `job.fact`, the others by their own name."""
    flat = {f"{name}.{key}": value for name, job in facts["jobs"].items() for key, value in job.items()}
    return {**flat, **{key: value for key, value in facts.items() if key != "jobs"}}
