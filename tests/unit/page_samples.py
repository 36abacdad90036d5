"""Pages of finished scenarios, and what a browser would find in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from html.parser import HTMLParser
from typing import Any

import jsonschema

from statek_sim.reporting.model import build_report
from statek_sim.reporting.page.data import PageData, page_data, page_file
from statek_sim.suite.result import ScenarioResult
from statek_sim.values import JSON


class Elements(HTMLParser):
    """The `script` elements of a page by id or run, their texts as a browser has them, and all other elements."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.data: dict[str, str] = {}
        self.names: list[str] = []
        self.comments: list[str] = []
        self._open: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        known = dict(attrs)
        if tag == "script":
            self._open = known.get("id") or known.get("data-run") or f"script {len(self.data)}"
            self.data[self._open] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._open = None

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.data[self._open] += data


def page(*results: ScenarioResult, **options: Any) -> PageData:
    """Return the data of a page about these results, in any order."""
    report = build_report(results, preset=None, seed=None)
    return page_data(results, report, **options)


def index(*results: ScenarioResult, **options: Any) -> dict[str, Any]:
    """Return the page's index."""
    found: dict[str, Any] = json.loads(page(*results, **options).index)
    return found


def check_index(found: Mapping[str, JSON]) -> None:
    """Raise when an index is not what the schema says."""
    _validator("index").validate(found)


def check_details(*found: Mapping[str, JSON]) -> None:
    """Raise when details are not what the schema says."""
    validator = _validator("details")
    for one in found:
        validator.validate(one)


@cache
def _validator(name: str) -> Any:
    schema: Any = {**json.loads(page_file("page_schema.json")), "$ref": f"#/$defs/{name}"}
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def told(details: Mapping[str, Any], *kinds: str) -> list[tuple[str, str]]:
    """Return kind and text of the entries of these kinds, in order."""
    return [(entry["kind"], entry["text"]) for entry in details["transcript"] if entry["kind"] in kinds]


def seqs(entries: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return where in the trace entries are."""
    return [entry["seq"] for entry in entries]
