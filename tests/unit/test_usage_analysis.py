"""The usage of turns, jobs, scenarios and suites."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from statek_sim.analysis.run_usage import analyse, scenario_use
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import builtin_suites, run_suite
from statek_sim.usage.messages import TOKENS_PER_TOOL_CALL
from statek_sim.usage.pricing import PriceList, load_prices
from statek_sim.usage.token_usage import approx_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import JSON
from tests.unit.usage_samples import dialog, played

REPORT: JSON = {"prompt": 1000, "completion": 10, "cached": 400}


def _prices(folder: Path, *rows: str) -> PriceList:
    head = "PROVIDER,MODEL,MODEL_FAMILY,INPUT_PRICE_PER_M,INPUT_PRICE_PER_CACHED_M,OUTPUT_PRICE_PER_M"
    (folder / "prices.csv").write_text("\n".join((head, *rows)) + "\n", encoding="utf-8")
    return load_prices(folder)


def test_a_scenarios_usage_is_what_its_run_recorded() -> None:
    result = played(dialog({"text": "Dzień dobry"}))
    use, usage = scenario_use(result).use, result.record.usage
    assert (use.bytes_sent, use.bytes_received) == (usage.bytes_sent, usage.bytes_received)
    assert (use.approx_tokens, use.measured_tokens) == (usage.approx_tokens, usage.measured_tokens)
    assert (use.tokenizer, use.reported_tokens) == ("o200k_base", None)


def test_turns_tell_their_own_usage() -> None:
    say: JSON = {"tools": [{"name": "say", "args": {"text": "hi"}}]}
    (job,) = scenario_use(played(dialog(say, {"text": "done"}, tools=["say"]))).jobs
    assert [(turn.turn, turn.model, turn.provider) for turn in job.turns] == [
        (1, "gpt-4o", "OPENROUTER"),
        (2, "gpt-4o", "OPENROUTER"),
    ]
    first, second = (turn.use for turn in job.turns)
    assert first.waterfall.history == 0
    assert second.parts.history_bytes == len('{"role": "user", "content": "Good morning"}') + len(", ")
    assert job.stop == "final"


def test_escapes_and_reply_texts_are_counted_in_bytes() -> None:
    use = scenario_use(played(dialog({"text": "ż"}, message="好😀"))).use
    assert use.parts.escape_bytes == (6 - 3) + (12 - 4)
    assert use.parts.text_bytes == len("好😀".encode())
    assert use.parts.reply_bytes == len("ż".encode())
    assert use.characters == len("好😀") + len("ż")


def test_a_tool_call_that_the_provider_left_without_a_name_has_its_arguments_alone() -> None:
    scenarios = load_or_fail([builtin_suites() / "wire-formats"])
    (result,) = run_suite(scenarios, profiles=["docs"], select="gemini-nameless-call")
    first = scenario_use(result).jobs[0].turns[0].use
    assert first.parts.reply_bytes == len("{}")
    assert first.measured_completion == TOKENS_PER_TOOL_CALL + 1


def test_calls_that_failed_are_not_there() -> None:
    result = played(dialog({"http": 500}, {"text": "at last"}))
    assert len(result.record.calls) == 1
    assert scenario_use(result).use.calls == 1


def test_an_answer_that_statek_cannot_read_is_not_there() -> None:
    result = played(dialog({"body": "no json"}, unlimited=False))
    assert (result.record.llm_calls, result.record.calls) == (1, ())
    analysis = analyse([result])
    assert (analysis.scenarios, analysis.silent) == ((), ("samples/sample[docs]",))


def test_reported_tokens_are_summed_over_the_calls_that_have_them() -> None:
    say: JSON = {"tools": [{"name": "say", "args": {"text": "hi"}}], "usage": REPORT}
    use = scenario_use(played(dialog(say, {"text": "done"}, tools=["say"]))).use
    assert (use.calls, use.reporting, use.reported_tokens) == (2, 1, 1010)


def test_a_suites_estimate_is_the_sum_of_its_scenarios_estimates() -> None:
    results = [played(dialog({"text": "x" * number}), f"s-{number}") for number in range(8)]
    analysis = analyse(results)
    (suite,) = analysis.suites
    estimates = [approx_tokens(one.use.bytes_sent, one.use.bytes_received) for one in analysis.scenarios]
    assert suite.use.approx_tokens == analysis.overall.use.approx_tokens == sum(estimates)
    assert suite.use.waterfall.measured == suite.use.measured_tokens
    assert (suite.name, suite.scenarios) == ("samples", 8)


def test_results_come_in_any_order() -> None:
    results = [played(dialog({"text": "done"}), f"s-{number}") for number in range(3)]
    assert analyse(results) == analyse(results[::-1])


def test_costs_follow_the_price_file_and_the_provider_of_the_agent(tmp_path: Path) -> None:
    prices = _prices(tmp_path, "CLAUDEAI,claude,,3,0.3,15")
    told: JSON = {"text": "hi", "usage": {"prompt": 3, "completion": 4, "cached": 1000, "cost": 0.5}}
    result = played(dialog(told, model="claude", metadata={"PROVIDER": "CLAUDEAI"}))
    cost = scenario_use(result, prices=prices).use.cost
    assert (cost.statek, cost.billed, cost.reported) == (
        Decimal("-0.002631"),
        Decimal("0.000369"),
        Decimal("0.5"),
    )
    assert cost.problems[0] == "negative cost -0.002631"


def test_without_a_price_the_reported_cost_counts() -> None:
    told: JSON = {"text": "hi", "usage": {"prompt": 3, "completion": 4, "cost": 0.25}}
    cost = scenario_use(played(dialog(told))).use.cost
    assert (cost.statek, cost.billed, cost.problems) == (Decimal("0.25"), Decimal("0.25"), ())


def test_a_model_with_several_prices_is_told(tmp_path: Path) -> None:
    prices = _prices(tmp_path, "OPENROUTER,gpt-4o,,1,,2", "OPENROUTER,gpt-4o,,3,,4")
    use = scenario_use(played(dialog({"text": "hi", "usage": REPORT})), prices=prices).use
    assert use.cost.statek == Decimal("0.00102")
    assert use.cost.problems == (
        f"OPENROUTER gpt-4o has several prices ({tmp_path}/prices.csv:2, {tmp_path}/prices.csv:3); "
        "which price STATEK uses is unspecified",
    )


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|im_start|>system<|im_sep|>", "[INST] </s> <s>"])
def test_special_token_strings_are_text_like_any_other(text: str) -> None:
    use = scenario_use(played(dialog({"text": text}, message=text))).use
    assert use.measured_completion > 1
    assert use.waterfall.measured == use.measured_tokens


def test_arguments_of_a_tool_call_are_measured_as_the_model_writes_them_not_as_escapes() -> None:
    call: JSON = {"tools": [{"name": "say", "args": {"text": "请您核对一下"}}]}
    result = played(dialog(call, {"text": "done"}, tools=["say"]))
    count = tokenizer_for_model("gpt-4o").tokenizer.count
    assert result.record.calls[0].usage.measured_completion == (
        TOKENS_PER_TOOL_CALL + count("say") + count('{"text": "请您核对一下"}')
    )
