"""What an upgrade changes, in the terminal, as Markdown, and as JSON."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from statek_sim.compare.changes import side_named
from statek_sim.compare.facts import Difference
from statek_sim.compare.matrix import Row, Verdict, VersionMatrix
from statek_sim.compare.upgrade import (
    OTHER,
    SUBJECTS,
    Upgrade,
    comparison_json,
    subject_of,
    upgrade_between,
)
from statek_sim.reporting.comparison import WIDTH, markdown_lines, text_lines, upgrade_blocks
from statek_sim.semantics import Profile
from tests.unit.compare_samples import CHAT, PLAIN, SILENT, TOOLS, report_of
from tests.unit.suite_samples import load

DIFFERENCE = Difference("jobs.main.turns", 4, 5)
PACKAGE = VersionMatrix(
    version="1.2.7",
    profile="1.2",
    python="3.11.7",
    rows=(
        Row(scenario="chat", verdict=Verdict.AGREE),
        Row(scenario="silent", verdict=Verdict.DIFFERS, differences=(DIFFERENCE,)),
        Row(scenario="tools", verdict=Verdict.VARIES, differences=(DIFFERENCE,)),
    ),
)


def shown(upgrade: Upgrade, *packages: VersionMatrix) -> list[str]:
    return list(text_lines(upgrade_blocks(upgrade, packages, full=False)))


def markdown(upgrade: Upgrade) -> list[str]:
    return list(markdown_lines(upgrade_blocks(upgrade, (), full=True)))


@pytest.fixture
def report(tmp_path: Path) -> Upgrade:
    return report_of(tmp_path, "1.2.7", "1.4.2")


def test_the_terminal_begins_with_what_the_preset_allows_and_what_changes(report: Upgrade) -> None:
    lines = shown(report)
    assert lines[0] == "STATEK 1.2.7 -> 1.4.2: changes"
    assert "follow-up messages until the harness stops the chat                       6      3  <-" in lines
    assert "How long a job may run                                1  stops 1 job" in lines
    assert "Tools offered to the model, and request size          0  no jobs change" in lines


def test_a_change_is_told_with_both_outcomes_its_reason_and_its_source(report: Upgrade) -> None:
    text = " ".join(" ".join(shown(report)).split())
    assert (
        "limit_extension: additive -> multiplicative. How completions extend a limit: `base + (1 + ext) * n`"
        in text
    )
    assert (
        "samples/chat: A chat of four messages 1.2.7 main ends with its reply after 4 LLM calls, 7 turns 1.4.2 main is "
        "stopped by the harness (Maximum number of turns exceeded: 6/5.0) after 3 LLM calls, 6 turns"
    ) in text
    assert (
        "caused by limit_extension under preset default main is not stopped (4 LLM calls) -> is stopped by"
        in text
    )


def test_the_terminal_keeps_to_its_width(report: Upgrade) -> None:
    assert max(map(len, shown(report))) <= WIDTH


def test_changes_in_the_same_words_are_told_once(tmp_path: Path) -> None:
    twice = SILENT + SILENT.replace("id: silent", "id: silent-again")
    text = "\n".join(shown(report_of(tmp_path, "1.2.5", "1.2.7", text=twice)))
    assert "the same in 1 more: silent-again" in text
    assert text.count("samples/silent") == 1


def test_of_many_changes_the_terminal_tells_some_and_names_the_others(tmp_path: Path) -> None:
    many = "".join(
        SILENT.replace("id: silent", f"id: silent-{n}").replace("exit('done')", f"exit({n})")
        for n in range(10)
    )
    report = report_of(tmp_path, "1.2.5", "1.2.7", text=many)
    text = "\n".join(shown(report))
    assert "2 more, listed by --markdown and --json: silent-8, silent-9" in text
    assert "### samples/silent-9" in "\n".join(markdown(report))


def test_rules_without_a_scenario_are_told_at_the_end(tmp_path: Path) -> None:
    lines = shown(report_of(tmp_path, "docs", "1.4.2", text=PLAIN))
    assert any(line.endswith("no difference") for line in lines)
    told = " ".join(lines).partition("Differing rules that none of these scenarios shows: ")[2]
    assert "limit_extension" in told


def test_rules_that_no_scenario_shows_are_explained_behind_what_differs(report: Upgrade) -> None:
    lines = shown(report)
    title = lines.index("Differing rules that none of these scenarios shows")
    assert any(" -> " in line for line in lines[title + 1 :])


def test_markdown_tells_every_aspect_in_a_table(report: Upgrade) -> None:
    lines = markdown(report)
    assert "| follow-up messages until the harness stops the chat | 6 | 3 | \\<- |" in lines
    assert "| main, to the user | number 4 of 4: Fine. | 3 in total |" in lines
    assert "caused by limit_extension" in lines


def test_json_has_the_raw_values_and_can_be_written(report: Upgrade) -> None:
    document = json.loads(json.dumps(comparison_json(report, ())))
    told = document["upgrade"]
    assert (document["schema"], document["versions"]) == ("statek-sim/compare@1", {})
    assert told["before"] == {"name": "1.2.7", "profile": "1.2"}
    (harness, offered) = told["subjects"]
    assert harness["jobs_under_preset"] == {"stops": 1}
    assert {"field": "jobs.main.llm_calls", "before": 4, "after": 3} in harness["changes"][0]["differences"]
    assert harness["stops"][0]["after"] == {"end": "limit: max_turns", "llm_calls": 3}
    assert offered["resized"][0]["scenario"] == "tools"


def test_a_change_says_whether_the_real_package_does_so_too(tmp_path: Path) -> None:
    scenarios = load(tmp_path, CHAT + SILENT + TOOLS)
    report = upgrade_between(side_named("1.2.7"), side_named("1.4.2"), scenarios, "default")
    assert "      real packages: 1.2.7 does the same" in shown(report, PACKAGE)
    package = comparison_json(report, (PACKAGE,))["versions"]
    assert isinstance(package, dict)
    verdicts = {"chat": "agree", "silent": "differs", "tools": "varies"}
    assert package["1.2.7"] == {
        "scenarios": 3,
        "agree": 1,
        "varies": 1,
        "differ": 1,
        "verdicts": verdicts,
    }


def test_every_rule_has_a_subject() -> None:
    assert set(SUBJECTS) == {spec.name for spec in fields(Profile)} - {"name"}


def test_what_several_rules_cause_comes_under_the_first_of_their_subjects() -> None:
    assert subject_of(["limit_extension"]) == "How long a job may run"
    assert subject_of(["system_tools", "plain_notifications"]) == "Subtask notifications and results"
    assert subject_of(["system_tools"]) == "Tools offered to the model, and request size"
    assert subject_of(["a rule of the future"]) == subject_of([]) == OTHER
