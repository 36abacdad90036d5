r"""All data of a page: the index, and the details of as many runs as a page can hold, as JSON inside HTML.

No browser can take that text for anything but data, and it reads back as the same values: everything outside ASCII and
every `<`, `>` and `&` is written as `\uXXXX`. So no text can end its element or begin a comment, a lone surrogate can
be written at all, and what is invisible or changes the reading direction is not in the file. The data is not
compressed: every machine writes the same bytes, whatever compressor it has, and the file can be searched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from statek_sim.analysis.corpus_model import CorpusTable
from statek_sim.analysis.run_usage import scenario_use, tasks_of
from statek_sim.reporting.model import Report, in_order
from statek_sim.reporting.page.details import details_of
from statek_sim.reporting.page.index import index_of
from statek_sim.suite.diff import failure_text
from statek_sim.suite.result import Outcome, ScenarioResult
from statek_sim.telemetry.report import metrics_json, metrics_report
from statek_sim.usage.analysis import Use
from statek_sim.usage.tokenizers import TokenizerRegistry
from statek_sim.values import JSON

_MARKUP: Final = re.compile("[<>&\x7f]")
_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def embedded(value: JSON) -> str:
    """Return `value` as JSON for the inside of a `script` element; ValueError for numbers that JSON does not have."""
    return _MARKUP.sub(_escape, _encode(value))


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


ROOM: Final = 32_000_000
"""Characters of details on one page. Past it details are left out, those of passed runs first; the page says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageData:
    """What a page shows, as text for the inside of `script` elements: the index, and details by number of run.

    `name` stands at the top of it; `view` is the module that draws it.
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
    corpus: CorpusTable | None = None,
    gate: Mapping[str, JSON] | None = None,
    crashes: Mapping[str, JSON] | None = None,
    tokenizers: TokenizerRegistry | None = None,
    room: int = ROOM,
) -> PageData:
    """Return the page of a report and its results, given in any order; equal ones give an equal page.

    `gate` is what `gate_json` returns, `crashes` what `crashes_json` does; `tokenizers`
    are those that measured the runs.
    Runs have their details as long as there is `room`, the failed ones first.
    """
    ordered = in_order(results)
    details = dict(sorted(_details(ordered, report, tokenizers, room)))
    index = index_of(
        report,
        ordered,
        _use(ordered, tokenizers),
        corpus=corpus,
        gate=gate,
        crashes=crashes,
        metrics=_metrics(ordered),
        shown=frozenset(details),
    )
    return PageData(title=str(index["title"]), index=embedded(index), details=details)


def page_schema() -> dict[str, JSON]:
    """Return the JSON Schema (draft 2020-12) of a page's data: `index` and `details` under `$defs`."""
    text = (resources.files("statek_sim.reporting.page") / "page_schema.json").read_text("utf-8")
    schema: dict[str, JSON] = json.loads(text)
    return schema


_ON_PAGE: Final = ("definitions", "all", "groups")
"""Parts of the metrics that are shown."""


def _metrics(results: Sequence[ScenarioResult]) -> dict[str, JSON] | None:
    """Return the metrics of the runs' tasks, None where there is none."""
    tasks = tasks_of(results)
    if not tasks:
        return None
    metrics = metrics_json(metrics_report(tasks))
    return {part: metrics[part] for part in _ON_PAGE}


def _use(results: Sequence[ScenarioResult], tokenizers: TokenizerRegistry | None) -> Use | None:
    """Return the usage of all runs together."""
    uses = [scenario_use(result, tokenizers=tokenizers).use for result in results if result.record.calls]
    return Use.total(uses) if uses else None


def _details(
    results: Sequence[ScenarioResult], report: Report, tokenizers: TokenizerRegistry | None, room: int
) -> Iterator[tuple[int, str]]:
    """Yield the details that there is room for: those of failed runs, then those of passed ones."""
    for n in sorted(range(len(results)), key=lambda n: (results[n].outcome is Outcome.PASSED, n)):
        failure = failure_text(results[n]) if results[n].outcome is Outcome.FAILED else None
        text = embedded(details_of(results[n], failure=failure, tokenizers=tokenizers))
        room -= len(text)
        if room < 0:
            return
        yield n, text
