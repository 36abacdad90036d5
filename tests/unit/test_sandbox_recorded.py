"""What the real package (statek 1.4.2, CPython 3.11) prints for some seven hundred snippets."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tables import table_test
from tests.unit.sandbox_session import Session

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "samples" / "sandbox_recorded.json").read_text(encoding="utf-8")
)
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def without_addresses(line: str) -> str:
    return ADDRESS.sub(" at 0x...", line)[:300]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="error texts are those of Python 3.11")
@table_test("recorded", RECORDED, ids=[str(number) for number in range(len(RECORDED))])
def test_a_snippet_shows_what_the_real_package_shows(recorded: dict[str, Any]) -> None:
    shown = Session().shown(recorded["code"])
    assert [without_addresses(line) for line in shown] == recorded["console"], recorded["code"]
