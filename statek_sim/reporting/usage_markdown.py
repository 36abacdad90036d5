"""The usage analysis as GitHub-flavoured Markdown, also for CI step summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from statek_sim.reporting.text_format import count, plural, ratio, signed
from statek_sim.reporting.usage_terminal import CHARACTERS, ESTIMATE, ONCE, PROXY, cost_lines, money, reported
from statek_sim.usage.analysis import UsageAnalysis, Use
from statek_sim.usage.waterfall import MEANINGS, STEPS

_SPECIAL: Final = re.compile(r"[`*\[\]<>|~#\\]|(?<!\w)_|_(?!\w)")


def usage_markdown(analysis: UsageAnalysis) -> str:
    """Return the whole report. Equal analyses give equal text."""
    return "\n\n".join(_blocks(analysis)) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers."""
    rule = [":---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def escaped(text: str) -> str:
    """Return `text` so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _blocks(analysis: UsageAnalysis) -> Iterator[str]:
    yield "# Usage"
    if not analysis.scenarios:
        yield "No scenario had an answered LLM call."
        return
    yield f"{ESTIMATE[:1].upper()}{ESTIMATE[1:]}. {CHARACTERS}."
    yield _uses("suite", [(group.name, group.use) for group in (*analysis.suites, analysis.overall)])
    yield "## Where it comes from"
    yield _waterfall(analysis.overall.use)
    yield "## Scenarios"
    yield _uses("scenario", [(f"`{scenario.name}`", scenario.use) for scenario in analysis.scenarios])
    yield _steps([(f"`{scenario.name}`", scenario.use) for scenario in analysis.scenarios])
    if "(proxy)" in analysis.overall.use.tokenizer:
        yield f"{PROXY}."
    if analysis.silent:
        yield f"Without an answered call: {plural(len(analysis.silent), 'scenario')}."
    problems = list(cost_lines(analysis))
    if problems:
        yield "## Costs to look at"
        yield "\n".join(f"- {escaped(problem)}" for problem in problems)


def _uses(first: str, rows: Sequence[tuple[str, Use]]) -> str:
    head = (first, "calls", "sent", "received", "estimate", "chars//4", "measured", "estimate / measured")
    return markdown_table(
        (*head, "reported", "cost", "tokenizer"),
        [
            (
                name,
                count(use.calls),
                count(use.bytes_sent),
                count(use.bytes_received),
                count(use.approx_tokens),
                count(use.character_tokens),
                count(use.measured_tokens),
                ratio(use.ratio),
                escaped(reported(use)),
                money(use.cost.statek),
                escaped(use.tokenizer),
            )
            for name, use in rows
        ],
    )


def _waterfall(use: Use) -> str:
    steps = use.waterfall
    rows = [("said once", count(steps.once), ONCE)]
    rows.append(("history", signed(steps.history), MEANINGS["history"]))
    rows.append(("**estimate**", f"**{count(steps.estimate)}**", "what the harness holds against its limit"))
    rows += [(step, signed(getattr(steps, step)), escaped(MEANINGS[step])) for step in STEPS[1:]]
    rows.append(("**measured**", f"**{count(steps.measured)}**", f"what {escaped(use.tokenizer)} counts"))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (("step", "tokens", ""), _RULE, *rows))


_RULE: Final = (":---", "---:", ":---")


def _steps(rows: Sequence[tuple[str, Use]]) -> str:
    return markdown_table(
        ("scenario", "once", "history", "= estimate", *STEPS[1:], "= measured"),
        [
            (
                name,
                count(use.waterfall.once),
                signed(use.waterfall.history),
                count(use.waterfall.estimate),
                *(signed(getattr(use.waterfall, step)) for step in STEPS[1:]),
                count(use.waterfall.measured),
            )
            for name, use in rows
        ],
    )
