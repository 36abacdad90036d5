"""The matrix as a table."""

from __future__ import annotations

from statek_sim.compare.matrix import Row, Verdict, VersionMatrix
from statek_sim.reporting.comparison import table_lines, verdicts


def matrix(version: str, **rows: Verdict) -> VersionMatrix:
    return VersionMatrix(
        version=version,
        profile="1.4",
        python="3.11.7",
        rows=tuple(Row(scenario=name, verdict=verdict) for name, verdict in rows.items()),
    )


BOTH = (
    matrix("1.2.7", one=Verdict.AGREE, two=Verdict.VARIES),
    matrix("1.4.2", one=Verdict.AGREE, two=Verdict.DIFFERS, three=Verdict.AGREE, four=Verdict.VARIES),
)


def test_every_scenario_has_a_verdict_per_release() -> None:
    assert verdicts(BOTH) == {
        "one": ["agree", "agree"],
        "two": ["varies", "differs"],
        "three": ["-", "agree"],
        "four": ["-", "varies"],
    }


def test_the_table_has_what_does_not_agree_everywhere() -> None:
    assert list(table_lines(BOTH)) == [
        "scenario  1.2.7   1.4.2",
        "two       varies  differs",
        "four      -       varies",
        "2 of 4 scenarios agree on every release that they run on",
    ]


def test_without_any_difference_there_is_no_table() -> None:
    assert list(table_lines([matrix("1.4.2", one=Verdict.AGREE)])) == [
        "1 of 1 scenarios agree on every release that they run on"
    ]
