"""Random examples, with the reference runtime on both sides: what is found here is what a changed rule does."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from statek_sim import semantics
from statek_sim.backends.record import RunRecord
from statek_sim.compare.facts import Difference
from statek_sim.compare.matrix import compared
from statek_sim.scenario.load import load_or_fail
from tools.random_programs import search
from tools.random_programs.compare import (
    Example,
    RandomDifference,
    RandomRun,
    for_profile,
    made_small,
    random_examples,
    reference,
    scenario_of,
)
from tools.random_programs.draw import BATCH
from tools.random_programs.replies import Written
from tools.random_programs.report import random_lines
from tools.random_programs.search import EXCLUDED

ROOT = Path(__file__).resolve().parents[2]
DIGEST = (
    "import hashlib, json; from tools.random_programs.compare import random_examples; "
    "print(hashlib.sha256(json.dumps([one.written for one in random_examples(24, 0)]).encode()).hexdigest())"
)


def digest(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", DIGEST]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_the_same_number_makes_the_same_examples_in_every_process() -> None:
    assert digest("1") == digest("2")


def test_fewer_examples_are_the_first_of_more() -> None:
    few, more = list(random_examples(3, 7)), list(random_examples(BATCH + 3, 7))

    assert few == more[:3]
    assert [example.name for example in more[-2:]] == [f"random-{BATCH + 1}", f"random-{BATCH + 2}"]


def test_another_number_makes_other_examples() -> None:
    assert [one.written for one in random_examples(8, 0)] != [one.written for one in random_examples(8, 1)]


@pytest.fixture(scope="module")
def drawn() -> list[Example]:
    """Return so many examples that they reach everything: drawn once."""
    return list(random_examples(240, 0))


def test_examples_reach_every_kind_of_event_reply_and_style(drawn: list[Example]) -> None:
    written = str([example.written for example in drawn])

    for word in (
        *("'resolve'", "'push'", "'notify'", "'complete'", "'fail'", "'crash'", "'restart'", "'after'"),
        *("slow_echo", "global ", "LMH:one", "L:a,M:b", "BaseException", "datetime.now()", "read_clock()"),
        *(
            "'code'",
            "'text'",
            "'tools'",
            "'python'",
            "'http'",
            "'timeout'",
            "'body'",
            "'malformed_arguments'",
        ),
        *(
            "MARKDOWN",
            "CONSOLE",
            "MD_DIALOG",
            "DIRECT",
            "'reminder'",
            "'warmup'",
            "#STATEK: as tool",
            "# ----------",
        ),
        *(
            "fetch_next_item",
            "wait_for(",
            "delegate(",
            "start_subtask(",
            "finish_subtask(",
            "panic()",
            "exit(",
        ),
    ):
        assert word in written, word


def test_examples_begin_again_after_a_crash(drawn: list[Example]) -> None:
    examples = [str(example.written) for example in drawn]

    assert any("'http': 40" in example and "'push'" in example for example in examples)


def test_an_example_for_a_profile_without_notifications_has_none() -> None:
    written: Written = {"events": [{"at": 1, "notify": "main", "message": "x"}, {"at": 2, "resolve": "a"}]}

    assert for_profile(written, "1.2") == {"events": [{"at": 2, "resolve": "a"}]}
    assert for_profile(written, "1.4") is written


def test_nothing_that_is_excluded_lacks_its_reason() -> None:
    assert all(reason.endswith(".") for reason in EXCLUDED.values())


def test_documentation_names_every_exclusion() -> None:
    page = (ROOT / "docs" / "random-examples.md").read_text(encoding="utf-8")

    assert [name for name in EXCLUDED if f"**{name}**" not in page] == []


def against(ours: RunRecord | str, theirs: RunRecord | str) -> tuple[Difference, ...]:
    assert isinstance(ours, RunRecord)
    assert isinstance(theirs, RunRecord)
    return compared(ours, theirs)


class ChangedRule:
    """Compares the reference runtime with itself under one changed rule of profile 1.4."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
        self._monkeypatch = monkeypatch
        self._changed = dataclasses.replace(semantics.V1_4, **changes)  # type: ignore[arg-type]  # a rule by name

    def __call__(self, written: Written, name: str) -> tuple[Difference, ...]:
        scenario = scenario_of(written, name, "1.4")
        ours = reference(scenario, "1.4")
        with self._monkeypatch.context() as patch:
            patch.setitem(semantics.PROFILES, "1.4", self._changed)
            return against(ours, reference(scenario, "1.4"))


def first_difference(compare: ChangedRule, count: int) -> RandomDifference:
    for example in random_examples(count, 0):
        found = compare(example.written, example.name)
        if found:
            return RandomDifference(example=example, differences=found)
    raise AssertionError(f"{count} examples did not find the changed rule")


def test_a_changed_rule_is_found_and_its_example_made_small(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(search, "MOST_TRIES", 200)
    changed = ChangedRule(monkeypatch, notifications_before_request=False)
    found = first_difference(changed, 400)

    small = made_small(found, 0, changed)

    assert small.smallest is not None
    assert len(str(small.smallest)) < len(str(found.example.written))
    assert small.differences == changed(small.smallest, "again")
    run = RandomRun(version="1.4.2", profile="1.4", examples=400, differing=(small,))
    lines = list(random_lines([run]))
    assert lines[0] == f"{found.example.name} on 1.4.2: differs in {small.differences[0].field}"
    assert lines[-1] == "statek 1.4.2: 400 random examples: 1 differ"
    pasted = tmp_path / "pasted.yaml"
    pasted.write_text("\n".join(line[4:] for line in lines[-2].splitlines()))
    (loaded,) = load_or_fail([pasted])
    alike = reference(scenario_of(small.smallest, "x", "1.4"), "1.4")
    assert against(reference(loaded, "1.4"), alike) == ()


def test_a_difference_that_does_not_come_back_is_shown_as_it_was_found() -> None:
    example = next(iter(random_examples(1, 0)))
    found = RandomDifference(example=example, differences=(Difference("ledger", [], ["x"]),))

    assert made_small(found, 0, lambda written, name: ()) is found


def test_an_example_that_differs_is_told_with_both_values() -> None:
    example = Example(batch=0, place=0, written={})
    differing = (RandomDifference(example=example, differences=(Difference("idle", True, False),)),)
    runs = [RandomRun(version="1.4.2", profile="1.4", examples=9, differing=differing)]

    assert list(random_lines(runs)) == [
        "random-0 on 1.4.2: differs in idle",
        "    reference: true",
        "    installed: false",
        "statek 1.4.2: 9 random examples: 1 differ",
    ]
