"""What happened, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.compare.changes import Told, told
from tests.unit.compare_samples import CHAT, SILENT, report_of


def said(folder: Path, before: str, after: str, text: str) -> list[Told]:
    (section, *_) = report_of(folder, before, after, text=text).sections
    return list(told(section.changes[0]))


def test_an_ending_comes_first_with_the_counts_that_differ(tmp_path: Path) -> None:
    first, second, *_ = said(tmp_path, "1.2.7", "1.4.2", CHAT)
    assert first == Told(
        "main",
        "ends with its reply after 4 LLM calls, 7 turns",
        "is stopped by the harness (Maximum number of turns exceeded: 6/5.0) after 3 LLM calls, 6 turns",
        ending=True,
    )
    assert (second.about, second.before, second.after) == (
        "main, to the user",
        "number 4 of 4: Fine.",
        "3 in total",
    )
    assert second.sentence(second.after) == "main, to the user: 3 in total"


def test_an_exit_is_told_with_its_value(tmp_path: Path) -> None:
    first, *_ = said(tmp_path, "1.2.5", "1.2.7", SILENT)
    assert (
        first.sentence(first.after) == "main ends with exit(done) after 1 exception, 1 failing turn in a row"
    )


@pytest.mark.parametrize(
    ("replies", "before", "after"),
    [
        (
            "{code: c = 3}, {code: exit('done')}",
            "ends early: 1 scripted reply was never used",
            "finishes",
        ),
        (
            "{code: c = 3}",
            "finishes",
            "continues: requests reply 5, which the scenario does not have",
        ),
    ],
)
def test_a_script_that_does_not_fit_is_told_as_what_the_job_does(
    tmp_path: Path, replies: str, before: str, after: str
) -> None:
    text = SILENT.replace("{code: exit('done')}", replies)
    assert said(tmp_path, "1.2.5", "1.2.7", text)[0] == Told("the run", before, after, ending=True)


def test_a_hang_is_told_with_its_reason(tmp_path: Path) -> None:
    text = CHAT.replace(", warmup: 'print(\"open\")'", "")
    first, second, *_ = said(tmp_path, "1.2.5", "1.2.7", text)
    assert first.before.startswith("hangs: job 'main' repeats the same step forever: AttributeError")
    assert second.before == "is left STARTED after 0 LLM calls, 0 turns, 0 completed units"
