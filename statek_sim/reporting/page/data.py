r"""Builds a report's HTML page, with an index of all runs and the details of as many runs as fit, as embedded JSON.

Non-ASCII characters, `<`, `>` and `&` are written as `\uXXXX`, so no text can end its element or begin a comment, and
the file contains no lone surrogates and no invisible or direction-changing characters. The data is not compressed, so
every machine writes the same bytes and the file can be searched.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from statek_sim.analysis.run_usage import scenario_use, tasks_of
from statek_sim.backends.record import UsageRecord
from statek_sim.explore.result import Cell, Exploration, Explored, Failure
from statek_sim.reporting.exploration import proven_words
from statek_sim.reporting.model import Report, Row, Summary, in_order
from statek_sim.reporting.page.details import details_of, waterfall_json
from statek_sim.reporting.report_text import verdict
from statek_sim.reporting.text_format import TEXT, excerpt
from statek_sim.suite.diff import failure_text
from statek_sim.suite.result import Outcome, ScenarioResult
from statek_sim.telemetry.report import metrics_json, metrics_report
from statek_sim.usage.breakdown import MEANINGS, Use
from statek_sim.usage.tokenizers import TokenizerRegistry
from statek_sim.values import JSON, record

if TYPE_CHECKING:
    from jinja2 import Template


_MARKUP: Final = re.compile("[<>&\x7f]")
_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def embedded(value: JSON) -> str:
    """Return `value` as JSON for use inside a `script` element.

    Raises ValueError for a number that JSON cannot represent.
    """
    return _MARKUP.sub(_escape, _encode(value))


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


ROOM: Final = 32_000_000
"""The maximum number of characters of run details on a page. Beyond it, the page omits details, for passed runs first,
and says so in a note.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageData:
    """A page's contents as strings for `script` elements: the index, and the details by run number.

    `name` is the page heading; `view` is the JavaScript module that draws the page.
    """

    title: str
    index: str
    details: Mapping[int, str]
    name: str = "STATEK scenarios"
    view: str = "view/page.js"


def page_data(
    results: Sequence[ScenarioResult],
    report: Report,
    *,
    gate: Mapping[str, JSON] | None = None,
    crashes: Mapping[str, JSON] | None = None,
    tokenizers: TokenizerRegistry | None = None,
    room: int = ROOM,
) -> PageData:
    """Return the page data for a report and its results, in any order; equal inputs give equal pages.

    `gate` and `crashes` come from `gate_json` and `crashes_json`. `tokenizers` are the tokenizers that measured the
    runs. Run details, failed runs first, are included up to `room` characters.
    """
    ordered = in_order(results)
    details = dict(sorted(_details(ordered, report, tokenizers, room)))
    index = index_of(
        report,
        ordered,
        _use(ordered, tokenizers),
        gate=gate,
        crashes=crashes,
        metrics=_metrics(ordered),
        shown=frozenset(details),
    )
    return PageData(title=str(index["title"]), index=embedded(index), details=details)


_ON_PAGE: Final = ("definitions", "all", "groups")
"""The metrics fields that the page shows."""


def _metrics(results: Sequence[ScenarioResult]) -> dict[str, JSON] | None:
    """Return metrics for the runs' tasks, or None if there are no tasks."""
    tasks = tasks_of(results)
    if not tasks:
        return None
    metrics = metrics_json(metrics_report(tasks))
    return {part: metrics[part] for part in _ON_PAGE}


def _use(results: Sequence[ScenarioResult], tokenizers: TokenizerRegistry | None) -> Use | None:
    """Return the total usage across all runs."""
    uses = [scenario_use(result, tokenizers=tokenizers).use for result in results if result.record.calls]
    return Use.total(uses) if uses else None


def _details(
    results: Sequence[ScenarioResult], report: Report, tokenizers: TokenizerRegistry | None, room: int
) -> Iterator[tuple[int, str]]:
    """Yield the number and details of each run that fits, failed runs first."""
    for n in sorted(range(len(results)), key=lambda n: (results[n].outcome is Outcome.PASSED, n)):
        failure = failure_text(results[n]) if results[n].outcome is Outcome.FAILED else None
        text = embedded(details_of(results[n], failure=failure, tokenizers=tokenizers))
        room -= len(text)
        if room < 0:
            return
        yield n, text


VERSION: Final = 1
TOLD: Final = 100
"""The maximum number of failures shown in full in the index."""

BRIEF: Final = 300
"""The maximum length of each later failure; the run details contain the full text."""


def index_of(
    report: Report,
    results: Sequence[ScenarioResult],
    use: Use | None,
    *,
    gate: Mapping[str, JSON] | None,
    crashes: Mapping[str, JSON] | None,
    metrics: Mapping[str, JSON] | None,
    shown: frozenset[int],
) -> dict[str, JSON]:
    """Return the index as defined by the page's schema. `results` are in report row order.

    `use` is the total usage across all runs, or None if no call can be analysed. `shown` are the runs whose details are
    on the page. `gate`, `crashes` and `metrics` come from `gate_json`, `crashes_json` and `metrics_json`.
    """
    overall = report.overall
    places = {row.name: n for n, row in enumerate(report.rows)}
    return {
        "version": VERSION,
        "title": f"STATEK scenarios: {verdict(overall)}",
        **record(report, "digest", "profiles", "preset", "seed"),
        "totals": {
            "jobs": sum(len(row.jobs) for row in report.rows),
            "turns": sum(row.turns for row in report.rows),
            **record(overall.usage, "bytes_sent", "bytes_received", "tokenizer"),
            **_counts(overall),
        },
        "suites": [{"name": suite.name, **_counts(suite)} for suite in report.suites],
        "runs": [
            _run(n, row, result, details=n in shown)
            for n, (row, result) in enumerate(zip(report.rows, results, strict=True))
        ],
        "left_out": len(report.rows) - len(shown),
        "meanings": dict(MEANINGS),
        "waterfall": None if use is None else waterfall_json(use.waterfall),
        "gate": None if gate is None else dict(gate),
        "crashes": None if crashes is None else dict(crashes),
        "metrics": None if metrics is None else dict(metrics),
        "failures": [
            {
                "runs": [places[name] for name in failure.runs],
                "text": excerpt(failure.text, TEXT if n < TOLD else BRIEF),
            }
            for n, failure in enumerate(report.failures)
        ],
    }


def _counts(summary: Summary) -> dict[str, JSON]:
    return {"runs": summary.total, **record(summary, "passed", "failed"), **_tokens(summary.usage)}


def _run(n: int, row: Row, result: ScenarioResult, *, details: bool) -> JSON:
    stops = dict.fromkeys(job.stop for job in row.jobs if job.stop is not None)
    return {
        "n": n,
        **record(row, "name", "suite", "id", "profile", "outcome", "turns"),
        "title": excerpt(result.scenario.title),
        "tags": list(result.scenario.tags),
        "stops": [*stops],
        "jobs": len(row.jobs),
        **_tokens(row.usage),
        "details": details,
    }


def _tokens(usage: UsageRecord) -> dict[str, JSON]:
    return {
        "approx": usage.approx_tokens,
        "measured": usage.measured_tokens,
        "reported": usage.reported_tokens,
    }


CRASH_ROOM: Final = 8_000_000
"""The maximum number of characters of crash descriptions on a page; those for passing cells are dropped first."""

GOOD: Final = frozenset({"same", "asks"})


def crashes_json(exploration: Exploration, *, room: int = CRASH_ROOM) -> dict[str, JSON]:
    """Return a crash exploration for the page. Equal strings are stored once, those for failing cells first.

    A cell is `[event, silent, what, job, came, text]`; `text` is an index into `texts`, or -1 if it did not fit.
    """
    texts = _texts(exploration, room)
    return {
        "runs": exploration.runs,
        "scenarios": [_scenario(scenario, texts) for scenario in exploration.scenarios],
        "texts": [*texts],
        "left_out": sum(
            _text(cell) not in texts for scenario in exploration.scenarios for cell in scenario.cells
        ),
    }


def _texts(exploration: Exploration, room: int) -> dict[str, int]:
    """Return the strings that fit, with their indexes."""
    cells = [cell for scenario in exploration.scenarios for cell in scenario.cells]
    found: dict[str, int] = {}
    for cell in sorted(cells, key=lambda cell: cell.came in GOOD):
        text = _text(cell)
        if text not in found and len(text) <= room:
            room -= len(text)
            found[text] = len(found)
    return found


def _text(cell: Cell) -> str:
    return "\n".join(cell.lines)


def _scenario(scenario: Explored, texts: dict[str, int]) -> JSON:
    return {
        "name": f"{scenario.suite}/{scenario.id}[{scenario.profile}]",
        "proven": proven_words(scenario),
        "problem": scenario.problem,
        "failures": [_failure(failure) for failure in scenario.failures],
        "cells": [
            [cell.event, cell.silent, cell.what, cell.job, cell.came, texts.get(_text(cell), -1)]
            for cell in scenario.cells
        ],
    }


def _failure(failure: Failure) -> JSON:
    return {
        **record(failure, "invariant", "message", "times"),
        "where": [*map(str, failure.deviations)],
    }


_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[\w./-]+)";?$', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export (?=(?:const|let|class|(?:async )?function\*?) ([A-Za-z_$][\w$]*))", re.MULTILINE
)
_LEFT: Final = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def joined_modules(entry: str, read: Callable[[str], str]) -> str:
    """Return the module `entry` and all its imports as a single script; `read` returns a module's text, given its path.

    Each module becomes a function, in import order, because a single-file page has no URLs to import from. Only these
    import and export forms are supported, each on its own line:
    `import { a, b as c } from "./NAME";` and `export` before declarations, as in `export const a = ...`,
    `export function a() ...`, `export class A ...`.

    Raises ValueError for unsupported import or export forms and for circular imports.
    """
    texts: dict[str, str] = {}
    _add(entry, read, texts, ())
    body = "\n".join(f'modules["{name}"] = (() => {{\n{text}\n}})();' for name, text in texts.items())
    return f'"use strict";\n(() => {{\nconst modules = {{}};\n{body}\n}})();\n'


def _add(name: str, read: Callable[[str], str], texts: dict[str, str], importers: tuple[str, ...]) -> None:
    """Add a module to `texts` after the modules that it imports."""
    if name in importers:
        raise ValueError(f"{name}: imports itself through {' and '.join(importers)}")
    if name in texts:
        return
    text = read(name)
    for _, path in _IMPORT.findall(text):
        _add(_beside(name, path), read, texts, (*importers, name))
    texts[name] = _as_function(name, text)


def _as_function(name: str, text: str) -> str:
    """Return a function body that returns the module's exports."""
    exported = _EXPORT.findall(text)
    text = _IMPORT.sub(lambda found: _taken(name, found[1], found[2]), text)
    text = _EXPORT.sub("", text)
    if left := _LEFT.search(text):
        raise ValueError(f"{name}: {left[0]!r}: unsupported import or export form")
    return f"{text}\nreturn {{ {', '.join(exported)} }};"


def _taken(name: str, names: str, path: str) -> str:
    """Convert an import to a declaration."""
    parts = [part.strip().replace(" as ", ": ") for part in names.split(",") if part.strip()]
    return f'const {{ {", ".join(parts)} }} = modules["{_beside(name, path)}"];'


def _beside(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


_ENDS_ELEMENT: Final = re.compile(r"</(?:script|style)|<!--", re.IGNORECASE)


def render(page: PageData) -> str:
    """Return a page's HTML as one self-contained file; equal data gives equal text.

    The template escapes text except inside `script` and `style` elements, where text that would end the element is
    rejected. The page's Content-Security-Policy allows only these scripts and styles, by hash.
    """
    return _template().render(
        page=page,
        title=_readable(page.title),
        style=page_file("view/page.css"),
        scripts=(page_file("charts.js.xz"), joined_modules(page.view, page_file)),
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # only where a page is written

    environment = Environment(
        loader=PackageLoader("statek_sim.reporting", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(inside=_inside, source=_source)
    return environment.get_template("page.html.j2")


@cache
def page_file(name: str) -> str:
    """Return a file in this folder as text, decompressed if needed."""
    content = (resources.files("statek_sim.reporting.page") / name).read_bytes()
    return (lzma.decompress(content) if name.endswith(".xz") else content).decode("utf-8")


def _inside(text: str) -> str:
    """Return text for a `script` or `style` element; raises ValueError if the text would end the element."""
    if found := _ENDS_ELEMENT.search(text):
        raise ValueError(f"{found[0]!r} would end its element or begin a comment")
    return text


def _source(text: str) -> str:
    """Return a script's or style's hash for a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _readable(text: str) -> str:
    """Return `text` without lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
