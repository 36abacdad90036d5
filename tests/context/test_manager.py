"""The context manager: what it takes away, in which order, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from statek_sim import ScriptedLLM, text, tool_call
from statek_sim.agent.context.compaction_steps import LEAST_CUT, drop
from statek_sim.agent.context.history import NOTE_OPENING, Goal, Past, Unit
from statek_sim.agent.context.manager import ContextManager, ContextSettings, compacted
from statek_sim.agent.effects import Compaction, Parts, SideModel, TextWanted
from statek_sim.agent.harness import AgentHarness
from statek_sim.errors import BadInput, BadScenario, CompactionFailed, ContextOverflow
from statek_sim.scenario.load import load_or_fail
from statek_sim.trace import Compacted, LLMReplied
from statek_sim.usage.conversation import MessageMeter
from statek_sim.values import JSON, Message
from tests.context.histories import HEAD, count, tokens, turn, words
from tests.says import line_with
from tests.tables import table_test


def shorter(history: list[Message], **settings: object) -> Compaction:
    made = compacted(history, ContextSettings(reserve=0, **settings), count)  # type: ignore[arg-type]
    assert made is not None
    return made


def test_what_is_answered_is_read_even_if_nothing_is_to_be_kept() -> None:
    history = [*HEAD, *turn(1, words(80)), *turn(2, words(80))]
    made = shorter(history, budget=tokens(history) - 1, keep=0)
    assert made.messages[-1] == history[-1]
    assert made.messages[3]["content"] == f"[cleared: a result of {count(history[3])} tokens]"


def test_a_result_that_is_shorter_than_its_placeholder_is_left() -> None:
    history = [*HEAD, *turn(1, "ok"), *turn(2, words(80)), *turn(3, "ok")]
    made = shorter(history, budget=tokens(history) - 1, keep=1)
    assert [one["content"] for one in made.messages[3:6:2]] == ["ok", "[cleared: a result of 164 tokens]"]


def test_images_in_results_are_cleared_too() -> None:
    picture: dict[str, JSON] = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + "A" * 2000},
    }
    first = turn(1, "")
    answer: Message = {**first[1], "content": [picture]}
    history = [*HEAD, first[0], answer, *turn(2, "ok")]
    assert "AAAA" not in str(shorter(history, budget=tokens(history) - 1, keep=1).messages)


def test_a_cut_result_has_its_beginning_and_its_end() -> None:
    history = [*HEAD, *turn(1, f"BEGIN {words(2000)} END")]
    made = shorter(history, budget=300)
    said = str(made.messages[-1]["content"])
    assert said.startswith("BEGIN word0")
    assert said.endswith("END")
    assert f"the whole result has {count(history[-1])} tokens" in said
    assert 250 < tokens(made.messages) <= 300


def test_the_mark_of_a_cut_result_fits_into_the_least_that_is_left_of_one() -> None:
    history = [*HEAD, *turn(1, *[words(200)] * 5)]
    least = tokens(history) - 5 * count(history[-1]) + 5 * LEAST_CUT
    assert tokens(shorter(history, budget=least).messages) <= least
    with pytest.raises(ContextOverflow, match=r"^the prompt has \d+ tokens that cannot be removed"):
        shorter(history, budget=least - 5)


def test_a_pinned_result_is_not_cut_but_the_others_of_its_batch_are() -> None:
    history = [*HEAD, *turn(1, f"{words(100)} vat is 19 % {words(100)}", words(900))]
    made = shorter(history, budget=700, pinned=("vat is 19 %",))
    assert made.messages[3] == history[3]
    assert made.cut == 1


def test_a_summary_is_made_of_results_that_were_cleared_a_moment_ago() -> None:
    asked: list[TextWanted] = []

    def answer(wanted: TextWanted) -> str:
        asked.append(wanted)
        return "It broke in March."

    later = [one for number in range(2, 6) for one in turn(number, words(60))]
    history = [*HEAD, *turn(1, f"The build broke in March. {words(300)}"), *later]
    settings = ContextSettings(budget=500, reserve=0, keep=1, target=1, summary=SideModel(model="m"))
    made = compacted(history, settings, count, summary=answer)
    assert made is not None
    assert made.strategy == "clear > summarise"
    assert "word" in str(asked[0].messages)
    assert "[cleared" not in str(asked[0].messages)


def test_cleared_turns_stay_where_a_note_could_list_nothing() -> None:
    history = [*HEAD, *turn(1, words(300)), *turn(2, words(60)), *turn(3, words(60))]
    made = shorter(history, budget=252, keep=1, target=60)
    assert made.strategy == "clear"
    assert made.messages[2] == history[2]


def test_a_summary_by_rule_leaves_out_the_oldest_and_says_how_many() -> None:
    history = [*HEAD, *(one for number in range(60) for one in turn(number, f"result {number}"))]
    made = shorter(history, budget=400, keep=1, steps=("summarise",), max_summary=120)
    note = str(made.messages[2]["content"])
    assert note.startswith(f"{NOTE_OPENING}\n(")
    assert "-> result 58" in note
    assert "-> result 0\n" not in note


def test_a_note_keeps_count_of_what_was_left_out_before() -> None:
    history = [*HEAD, *(one for number in range(30) for one in turn(number, words(20)))]
    first = shorter(history, budget=300, keep=1, steps=("drop",))
    grown = [*first.messages, *(one for number in range(30, 60) for one in turn(number, words(20)))]
    second = shorter(grown, budget=300, keep=1, steps=("drop",))
    gone = 60 * 2 - (len(second.messages) - 3)
    assert (
        second.messages[2]["content"] == f"{NOTE_OPENING}\n(at least {gone} earlier messages are not listed)"
    )


def test_a_step_of_ones_own_is_a_plain_function() -> None:
    def no_words(past: Past, goal: Goal) -> Past:
        units = [unit for unit in past.units if unit.kind != "turn" or unit.stays or unit is past.units[-1]]
        return past.with_units(units).said("no words")

    history = [*HEAD, *turn(1, words(50)), *turn(2, words(50))]
    made = shorter(history, budget=150, keep=1, steps=(no_words, drop))
    assert (made.strategy, len(made.messages)) == ("no words", 4)


def test_a_step_that_tears_a_call_from_its_result_is_told_before_anything_is_sent() -> None:
    def torn(past: Past, goal: Goal) -> Past:
        return past.with_units([unit for unit in past.units if unit.kind != "turn"] + [_half(past)])

    history = [*HEAD, *turn(1, words(50)), *turn(2, words(50))]
    with pytest.raises(
        CompactionFailed,
        match=r"cannot be sent in the format openai: message 2 calls 'call_2_0', .* \(the compaction steps",
    ):
        shorter(history, budget=100, steps=(torn,))


def _half(past: Past) -> Unit:
    last = past.units[-1]
    return replace(last, messages=last.messages[:1], tokens=5)


def test_a_history_that_no_provider_took_before_is_not_ours_to_mend() -> None:
    history = [*HEAD, *turn(1, words(50))[:1], *turn(2, words(90))]
    with pytest.raises(
        CompactionFailed, match=r"no result follows \(the original history has this problem\)$"
    ):
        shorter(history, budget=110, keep=1, steps=("cut",))


def test_the_model_that_summarises_is_shown_no_more_than_fits_its_window() -> None:
    asked: list[TextWanted] = []

    def answer(wanted: TextWanted) -> str:
        asked.append(wanted)
        return "Short."

    history = [*HEAD, *(one for number in range(200) for one in turn(number, words(30)))]
    settings = ContextSettings(
        budget=900,
        reserve=100,
        keep=1,
        steps=("summarise",),
        summary=SideModel(model="m"),
        max_summary=100,
    )
    compacted(history, settings, count, summary=answer)
    assert tokens(asked[0].messages) <= settings.room
    assert "call: read" in str(asked[0].messages[1]["content"])


@table_test(
    ("wrong", "facts"),
    [
        ({"budget": 0}, ("budget", "at least 1 token", "got 0")),
        ({"budget": 10, "reserve": 10}, ("reserve is 10", "at least 0", "less than the budget, 10")),
        ({"keep": -1}, ("keep", "0 or more turns", "got -1")),
        ({"target": 9000}, ("target is 9000", "1 to 7168", "budget", "reserve")),
        ({"steps": ()}, ("steps", "empty")),
        ({"pinned": "the price"}, ("pinned", "list", "got 'the price'")),
        ({"pinned": (" ",)}, ("pinned", "empty", "expected a string")),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    wrong: Mapping[str, object], facts: tuple[str, ...]
) -> None:
    with pytest.raises(BadInput, match=line_with("context: ", *facts)):
        ContextSettings(**wrong)  # type: ignore[arg-type]


def test_a_step_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match=line_with("context: ", "'forget'", "clear, summarise, drop, cut")):
        ContextManager(ContextSettings(steps=("forget",)), count)  # type: ignore[arg-type]


# -- in the loop ------------------------------------------------------------------------------------------------


def look(number: int) -> str:
    """Look at a page."""
    return f"Page {number}: {words(60)}"


def run_of(turns: int, context: ContextSettings) -> AgentHarness:
    script = [tool_call("look", number=number) for number in range(turns)]
    return AgentHarness(
        ScriptedLLM([*script, text("done")], keep_requests=False),
        tools=[look],
        context=context,
        max_iterations=turns + 1,
    )


def test_the_cost_of_a_turn_is_flat_over_5000_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = [0]
    measure = MessageMeter.measure

    def counted(self: MessageMeter, message: Message) -> tuple[int, int]:
        measured[0] += 1
        return measure(self, message)

    monkeypatch.setattr(MessageMeter, "measure", counted)
    marks: list[int] = []

    def marked(number: int) -> str:
        """Look at a page."""
        if number % 1000 == 0:
            marks.append(measured[0])
        return look(number)

    agent = AgentHarness(
        ScriptedLLM(
            [*(tool_call("marked", number=n) for n in range(5001)), text("done")], keep_requests=False
        ),
        tools=[marked],
        context=ContextSettings(budget=4096),
        protection=False,
        max_iterations=5010,
    )
    run = agent.run("Go on.")
    assert run.stop == "final"
    costs = [after - before for before, after in pairwise(marks)]
    # The first thousand has the time in it before there is a summary.
    assert max(costs[1:]) <= 1.05 * min(costs[1:])
    assert costs[0] <= 1.2 * costs[1]
    prompts = [event.measured_prompt for event in run.deps.trace.of_job("main").of_type(LLMReplied)]
    assert max(prompts) <= 4096 - 1024


def test_compaction_is_rare_and_most_of_each_prompt_is_in_the_cache() -> None:
    run = run_of(300, ContextSettings(budget=8192)).run("Go on.")
    found = run.deps.trace.of_job("main").of_type(Compacted)
    assert 5 <= len(found) <= 15
    assert (run.conversation.prefix.share or 0) > 0.95
    assert all(event.prefix >= 1 for event in found)


def test_two_that_make_the_history_shorter_are_refused() -> None:
    with pytest.raises(BadInput, match=line_with("context", "parts.compactor", "both")):
        AgentHarness(context=ContextSettings(), parts=Parts(compactor=lambda messages, *, tokens: None))


# -- what a file may say ----------------------------------------------------------------------------------------

FILE = """\
scenarios:
  - id: one
    title: One.
    engine: agent
    agents:
      a:
        harness:
          context: {said}
"""


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("{budget: 100, reserve: 100}", ("reserve 100", "budget 100")),
        ("{budget: 100, reserve: 10, target: 91}", ("target 91", "budget", "reserve", "90")),
        ("{steps: [clear], summary: rule}", ("`summary` requires", "`summarise`", "`steps`")),
        ("{steps: [forget]}", ("'clear', 'summarise', 'drop' or 'cut'", "'forget'")),
        ("{summary: b}", ("agent 'b'", "rule, a")),
        ("{keep: -1}", ("keep", "number", "-1")),
        ("{pinned: ['']}", ("context.pinned",)),
        ("{buget: 1}", ("key 'buget'",)),
    ],
)
def test_a_context_that_does_not_fit_is_told_with_its_line(
    said: str, facts: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(FILE.replace("{said}", said))
    with pytest.raises(BadScenario, match=line_with(f"{file}:8", "'one'", *facts)):
        load_or_fail([file])


def test_context_and_compactor_are_not_said_together(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(FILE.replace("{said}", "{}") + "          compactor: 'm:f'\n")
    with pytest.raises(BadScenario, match=line_with("one.yaml:8", "one of context, compactor")):
        load_or_fail([file])


def test_a_content_of_blocks_weighs_what_it_says() -> None:
    blocks: list[JSON] = [{"type": "text", "text": words(3_000)}]
    history: list[Message] = [{"role": "user", "content": "Work."}, {"role": "user", "content": blocks}]
    settings = ContextSettings(budget=500, reserve=100)
    with pytest.raises(ContextOverflow, match="messages to answer"):
        compacted(history, settings, count)
