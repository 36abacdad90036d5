"""The gate's result in the terminal: presets against rules, then what fails, then what was noticed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from statek_sim.gate.verdict import GateResult, JudgedPreset, Verdict
from statek_sim.reporting.grid import fits, lay_out
from statek_sim.reporting.numbers import NOTHING, plural

_FIRST = 24
"""Columns that a rule's name should have for the table to stand upright."""


def gate_lines(result: GateResult, *, width: int) -> Iterator[Text]:
    """Yield the table, the failing sentences, the remarks, and the verdict on all of it."""
    yield from _table(result, width)
    if any(preset.path.stem != preset.name for preset in result.presets):
        yield Text()
    for preset in result.presets:
        if preset.path.stem != preset.name:
            yield from _wrapped(f"{preset.path}: ", origins(preset), "dim", width)
    if result.failed:
        yield Text()
        for verdict in result.failed:
            yield from _wrapped(f"{verdict.place}: ", f"{verdict.reason} ({verdict.rule})", "red", width)
    if result.remarks:
        yield Text()
        for remark in result.remarks:
            yield from _wrapped(f"{remark.place}: ", remark.message, "yellow", width)
    yield Text()
    yield Text(verdict_words(result), "bold red" if result.failed else "bold green")


def verdict_words(result: GateResult) -> str:
    """Return what comes of it all: `3 of 216 verdicts fail` or `all 216 verdicts pass`."""
    total = len(result.verdicts)
    if result.failed:
        fail = "fails" if len(result.failed) == 1 else "fail"
        return f"{len(result.failed):,} of {plural(total, 'verdict')} {fail}"
    return f"all {plural(total, 'verdict')} pass" if total != 1 else "1 verdict passes"


def origins(preset: JudgedPreset) -> str:
    """Return where each limit of a preset comes from: its file, or STATEK's default."""
    limits = {
        limit: f"{limit.value} {'unlimited' if value is None else value}" for limit, value in preset.limits
    }
    own = ", ".join(limits[limit] for limit in limits if limit in preset.stated)
    left = ", ".join(limits[limit] for limit in limits if limit not in preset.stated)
    return f"sets {own or 'no limit'}" + (
        f"; STATEK's defaults: {left}" if left else "; no limit is a default"
    )


def rules_of(result: GateResult) -> tuple[str, ...]:
    """Return the names of all rules, in the order in which they first come."""
    return tuple(dict.fromkeys(verdict.rule for verdict in result.verdicts))


def tally(verdicts: Sequence[Verdict]) -> str:
    """Return how some verdicts came out: `14 pass`, `3 of 14 fail`, or `-` for none."""
    failed = sum(not verdict.passed for verdict in verdicts)
    if not verdicts:
        return NOTHING
    return f"{failed} of {len(verdicts)} fail" if failed else f"{len(verdicts)} pass"


def of_cell(result: GateResult, preset: str, rule: str) -> list[Verdict]:
    """Return the verdicts on a preset by a rule."""
    return [verdict for verdict in result.verdicts if (verdict.preset, verdict.rule) == (preset, rule)]


def _table(result: GateResult, width: int) -> Iterator[Text]:
    presets = [preset.name for preset in result.presets]
    upright = [
        [_left("rule", "bold"), *(Text(preset, "bold") for preset in presets)],
        *(
            [_left(rule), *(_cell(of_cell(result, preset, rule)) for preset in presets)]
            for rule in rules_of(result)
        ),
    ]
    if fits(upright, width=width, first=_FIRST):
        yield from lay_out(upright, width=width)
    else:
        yield from lay_out(_list(result, presets), width=width)


def _list(result: GateResult, presets: Sequence[str]) -> list[list[Text]]:
    """Return a row per preset and rule, for names that are too long or too many to stand beside each other."""
    rows = [[_left("preset: rule", "bold"), Text("verdicts", "bold")]]
    for preset in presets:
        for rule in rules_of(result):
            verdicts = of_cell(result, preset, rule)
            if verdicts:
                rows.append([_left(f"{preset}: {rule}"), _cell(verdicts)])
    return rows


def _cell(verdicts: Sequence[Verdict]) -> Text:
    failed = any(not verdict.passed for verdict in verdicts)
    return Text(tally(verdicts), "red" if failed else "green" if verdicts else "dim")


def _wrapped(place: str, sentence: str, style: str, width: int) -> Iterator[Text]:
    """Yield the place and the sentence, in lines; what does not fit on the first is indented."""
    whole = " ".join(f"{place}{sentence}".split())
    lines = textwrap.wrap(
        whole, max(width, 40), subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )
    for number, line in enumerate(lines):
        text = Text(line)
        if not number:
            text.stylize(style, 0, len(place) - 2)
        yield text


def _left(text: str, style: str = "") -> Text:
    return Text(text, style, justify="left")
