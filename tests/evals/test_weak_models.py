"""Simulated weak models: what they do with each rate, what they share between arms, what they make of corrections."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from statek_sim.agent.context.history import NOTE_OPENING
from statek_sim.errors import BadInput, ProviderHTTPError
from statek_sim.evals.arms import Arm, named_after, parse_arms
from statek_sim.evals.experiment import _harness, run_one
from statek_sim.evals.ideal_plan import seen_in, shown_calls
from statek_sim.evals.model_simulator import TOKENIZER_OF, SimulatedModel
from statek_sim.evals.outcome import FailureClass, Outcome
from statek_sim.evals.profile import NATIVE, Profile, load_profile
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.wrong_replies import DAMAGES
from statek_sim.intervals import wilson
from statek_sim.providers.protocol import ChatRequest
from statek_sim.trace import Compacted, LLMReplied
from statek_sim.usage.messages import prompt_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from tests.evals.weak_models import eval_named, failing, flawless, suite
from tests.tables import table_test

FULL, BARE = named_after(("rescue", "nudges", "steps", "context", "protection")), named_after(())
CHAIN = "refund-the-late-order"


def run(profile: Profile, arm: Arm = FULL, *, scenario: str = CHAIN, seed: int = 0) -> Outcome:
    return run_one(eval_named(scenario), seed, arm, profile).outcome


def test_a_model_without_failures_passes_every_eval_in_every_arm() -> None:
    wrong = [
        (one.id, arm.name, out.problems)
        for one in suite()
        for arm in (FULL, BARE)
        if not (out := run_one(one, 1, arm, flawless()).outcome).passed
    ]
    # The bare harness shortens nothing: an eval whose context must be shortened is its to lose.
    assert [(name, arm) for name, arm, _ in wrong] == [
        (one.id, "bare") for one in suite() if one.context is not None
    ]


@table_test("failure", [one for one in FailureClass if one is not FailureClass.CONTEXT_LOSS])
def test_each_class_of_failure_acts_when_its_rate_says_so(failure: FailureClass) -> None:
    out = run(failing(failure, heeds=0.0), BARE)
    acted = Counter(turn.failure for turn in out.turns)
    assert acted[failure.value] > 0
    assert set(acted) <= {failure.value, None}


def test_a_class_acts_as_often_as_its_propensity() -> None:
    profile = failing(FailureClass.REPEATED_CALL, rate=0.3)
    turns = [turn for seed in range(60) for turn in run(profile, BARE, seed=seed).turns[1:]]
    acted = sum(turn.failure is not None for turn in turns)
    low, high = wilson(acted, len(turns)) or (0.0, 1.0)
    # Where the plan has answered, and at the first turn, there is nothing to repeat; here every other turn may.
    assert low <= 0.3 <= high, f"{acted} of {len(turns)}"


def test_a_malformed_call_comes_as_often_as_its_propensity_beside_early_answers() -> None:
    shares = {FailureClass.EARLY_ANSWER: 0.6, FailureClass.MALFORMED: 0.3}
    profile = failing().model_copy(update={"scenarios": {CHAIN: shares}})
    first = Counter(run(profile, BARE, seed=seed).turns[0].failure for seed in range(150))
    for failure, share in shares.items():
        low, high = wilson(first[failure.value], 150) or (0.0, 1.0)
        assert low <= share <= high, first


def test_the_same_scenario_seed_and_model_give_the_same_run() -> None:
    profile = failing(FailureClass.MALFORMED, FailureClass.WRONG_TOOL, rate=0.4)
    assert run(profile, seed=3) == run(profile, seed=3)
    assert [run(profile, seed=seed).turns for seed in range(4)] != [run(profile, seed=0).turns] * 4


def test_arms_meet_the_same_draws_until_they_do_something_else() -> None:
    profile = failing(FailureClass.WRONG_ARGUMENT, FailureClass.REPEATED_CALL, rate=0.4)
    for seed in range(8):
        first, second = run(profile, FULL, seed=seed), run(profile, named_after(["rescue"]), seed=seed)
        common = min(len(first.turns), len(second.turns))
        same = [one[:3] == two[:3] for one, two in zip(first.turns, second.turns, strict=False)]
        nudged = next((at for at, turn in enumerate(first.turns) if turn.nudged), common - 1)
        assert all(same[: nudged + 1])


@table_test("damage", sorted(DAMAGES))
def test_damaged_calls_are_real_text_that_rescue_reads_or_refuses_for_itself(damage: str) -> None:
    profile = failing(FailureClass.MALFORMED, damage=damage, heeds=1.0)
    profile = profile.model_copy(update={"rates": {**profile.rates, NATIVE: 0.0}})
    with_rescue, without = run(profile), run(profile, named_after(["nudges", "steps"]))
    assert all(turn.stage is None for turn in without.turns)
    stages = {turn.stage for turn in with_rescue.turns if turn.failure}
    if damage != "lost_opening":  # Without its mark a call in Gemma's dialect is no longer known as one.
        assert None not in stages
    if damage in ("fence", "trailing_comma", "single_quotes", "bare_keys"):
        assert all(stage.startswith("read: ") for stage in stages if stage)
        assert with_rescue.passed
    if damage in ("cut", "prose"):
        assert all(stage.startswith("refused: ") for stage in stages if stage)


def test_a_cut_native_call_is_refused_by_the_loop_and_put_right_after_a_nudge() -> None:
    profile = failing(FailureClass.MALFORMED)
    profile = profile.model_copy(update={"rates": {**profile.rates, NATIVE: 1.0}})
    out = run(profile)
    assert {turn.nudged for turn in out.turns if turn.failure} == {"invalid_json"}
    assert out.passed
    assert not run(profile, named_after(["rescue", "steps"])).passed


def test_a_model_that_heeds_no_nudge_fails_where_one_that_heeds_all_passes() -> None:
    deaf = run(failing(FailureClass.MISSING_ARGUMENT, heeds=0.0))
    assert (deaf.stop, deaf.passed) == ("max_nudges", False)
    assert run(failing(FailureClass.MISSING_ARGUMENT, heeds=1.0)).passed


def test_nudges_are_heeded_as_often_as_the_profile_says() -> None:
    profile = failing(FailureClass.MISSING_ARGUMENT, heeds=0.4)
    turns = [turn for seed in range(50) for turn in run(profile, seed=seed).turns if turn.corrected]
    low, high = wilson(sum(turn.heeded for turn in turns), len(turns)) or (0.0, 1.0)
    assert low <= 0.4 <= high


def test_a_model_that_heeds_a_correction_does_not_say_again_what_was_refused() -> None:
    profile = failing(FailureClass.WRONG_ARGUMENT, rate=0.6)
    heeded = 0
    for eval_ in suite():
        for seed in range(2):
            instance = eval_.instance(seed)
            provider = SimulatedModel(profile, seed, instance, tier=eval_.tier)
            harness = _harness(instance, FULL, provider)
            harness.run(instance.task)
            replies = [
                (one.text, one.tool_calls) for one in harness.trace.events if isinstance(one, LLMReplied)
            ]
            for before, act, reply in zip(replies, provider.turns[1:], replies[1:], strict=False):
                assert not act.heeded or reply != before, (eval_.id, seed, act.number)
                heeded += act.heeded
    assert heeded > 10


def test_a_model_believes_what_it_wrongly_asked_for_and_the_judge_does_not() -> None:
    out = run(failing(FailureClass.WRONG_ARGUMENT), BARE, scenario="convert-money")
    assert out.completed
    assert not out.passed
    right = run(flawless(), BARE, scenario="convert-money")
    assert out.model_calls <= right.model_calls + 1, "it goes on with what it got, and does not ask again"


def test_results_belong_to_the_calls_of_their_own_reply_where_all_replies_use_the_same_ids() -> None:
    def said(value: str) -> list[dict[str, object]]:
        call = {
            "id": "call-1",
            "type": "function",
            "function": {"name": "look", "arguments": f'{{"at": "{value}"}}'},
        }
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call-1", "content": f"found {value}"},
        ]

    seen = seen_in([*said("a"), *said("b")])  # type: ignore[list-item]
    assert [(call.arguments, call.result) for call in seen] == [
        ({"at": "a"}, "found a"),
        ({"at": "b"}, "found b"),
    ]


def test_early_answers_end_a_run_where_no_steps_are_held_to() -> None:
    profile = failing(FailureClass.EARLY_ANSWER)
    assert run(profile, BARE).passed is False
    assert run(profile, BARE).model_calls == 1
    assert run(profile, FULL).passed


def test_a_loop_is_broken_by_protection_or_by_the_limit_of_iterations() -> None:
    profile = failing(FailureClass.LOOP, heeds=0.0)
    profile = profile.model_copy(update={"rates": {**profile.rates, "stays_in_loop": 1.0}})
    assert run(profile, BARE).stop == "max_iterations"
    assert run(profile, named_after(["protection"])).stop in ("stuck", "max_nudges", "final")


def test_a_prompt_longer_than_the_window_is_refused_as_servers_refuse_it() -> None:
    out = run(flawless().model_copy(update={"window": 256}), BARE, scenario="search-then-summarise")
    assert out.stop == "crash"
    assert not out.completed


def test_the_window_is_counted_in_the_tokens_that_the_agents_budget_is_counted_in() -> None:
    model = TOKENIZER_OF
    words = [{"role": "user", "content": json.dumps({"text": "the belt, the drum and the book " * 40})}]
    tokens = prompt_tokens(words, (), tokenizer_for_model(model).tokenizer)
    request = ChatRequest(
        job_id="main",
        role="agent",
        turn=1,
        attempt=1,
        at=0.0,
        model=model,
        messages=words,
        tools=(),
        temperature=None,
        bytes_sent=20 * tokens,
    )
    task = eval_named(CHAIN).instance(0)
    assert SimulatedModel(flawless(), 0, task, tier="easy", window=tokens).complete(request) is not None
    with pytest.raises(ProviderHTTPError, match=f"{tokens} tokens, the window has {tokens - 1}"):
        SimulatedModel(flawless(), 0, task, tier="easy", window=tokens - 1).complete(request)


@pytest.mark.parametrize("name", [one.id for one in suite() if one.context is not None])
def test_no_run_whose_prompts_are_kept_to_the_budget_is_refused_for_their_length(name: str) -> None:
    for profile in (flawless(), load_profile("ministral-3-8b-instruct")):
        stops = [run(profile, FULL, scenario=name, seed=seed).stop for seed in range(3)]
        assert "crash" not in stops


@pytest.mark.parametrize("name", [one.id for one in suite() if one.context is not None])
def test_a_model_whose_only_limit_is_its_window_needs_context_management_and_nothing_else(name: str) -> None:
    for seed in range(3):
        helped = run(flawless(), FULL, scenario=name, seed=seed)
        alone = run(flawless(), parse_arms(["no-context"])[0], scenario=name, seed=seed)
        assert (helped.passed, alone.passed, alone.stop) == (True, False, "crash")


def test_a_model_reads_in_a_summary_what_was_done_and_does_not_do_it_again() -> None:
    eval_ = eval_named("the-key-of-the-beginning")
    # So small that turns are taken out of the history, not only their results.
    tight = EvalScenario.placed(eval_.model_copy(update={"context": 2000}), eval_.path, eval_.line)
    instance = tight.instance(0)
    provider = SimulatedModel(flawless(), 0, instance, tier=tight.tier, window=tight.context)
    harness = _harness(instance, FULL, provider)
    assert harness.run(instance.task).stop == "final"
    events = harness.trace.events
    assert any(isinstance(one, Compacted) and one.summarised for one in events)
    stamped = [call for call in instance.world.record(None, "").calls if call.name == "stamp"]
    assert len(stamped) == 4


def test_the_lines_of_a_summary_are_read_as_calls_as_far_as_they_say_all() -> None:
    lines = [
        '- file({"name": "a) -> b"}) -> {"filed": 1}',
        '- read({"name": "b"}) -> {"text": "long [...] end"}',
        '- read({"name": "c [...] d"}) -> short',
        '- read({"name": "c [...]) -> short',
        '- read({"name": "e"}) -> [cleared: a result of 90 tokens]',
        '- read({"name": "f"}) -> Error: no manual f',
        "- said: read it -> now",
    ]
    note = {
        "role": "user",
        "content": "\n".join([NOTE_OPENING, "(at least 2 earlier messages are not listed)", *lines]),
    }
    found = [(call.name, call.arguments["name"], call.result, call.error) for call in shown_calls([note])]
    assert found == [
        ("file", "a) -> b", '{"filed": 1}', None),
        ("read", "b", None, None),
        ("read", "e", None, None),
        ("read", "f", None, "no manual f"),
    ]
    said = {"role": "assistant", "content": note["content"]}
    assert shown_calls([said]) == []


def test_context_loss_acts_in_long_prompts_only() -> None:
    profile = failing(FailureClass.CONTEXT_LOSS)
    short = run(profile.model_copy(update={"long_prompt": 100_000}), BARE, scenario="search-then-summarise")
    long = run(profile.model_copy(update={"long_prompt": 1}), BARE, scenario="search-then-summarise")
    assert {turn.failure for turn in short.turns} == {None}
    assert "context_loss" in {turn.failure for turn in long.turns}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["ablation"], 7),
        (["rescue+nudges", "no-steps"], 2),
    ],
)
def test_arms_are_named_after_their_parts(words: list[str], names: int) -> None:
    arms = parse_arms(words)
    assert len(arms) == names
    assert len({arm.name for arm in arms}) == names


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ablation", "bare"], "--arms: 'bare' and 'ablation' both include the arm bare; list it once"),
    ],
)
def test_one_harness_is_one_arm_and_asked_for_once(words: list[str], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_arms(words)
    assert str(refused.value) == said
