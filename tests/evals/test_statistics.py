"""Statistics against textbook values and against counting everything."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest

from statek_sim.evals.random_draws import beta, uniform
from statek_sim.evals.summary import (
    cluster_interval,
    compared,
    discordance,
    mcnemar,
    pass_power,
)
from statek_sim.intervals import wilson
from tests.tables import table_test


@table_test(("first", "second"), [(0, 0), (0, 5), (1, 9), (3, 3), (4, 11), (12, 2)])
def test_mcnemar_is_the_share_of_all_coin_throws_that_are_at_least_as_uneven(first: int, second: int) -> None:
    count = first + second
    if not count:
        assert mcnemar(first, second) == 1.0
        return
    uneven = abs(first - second)
    hits = sum(abs(2 * sum(throw) - count) >= uneven for throw in product((0, 1), repeat=count))
    assert mcnemar(first, second) == pytest.approx(hits / 2**count, abs=1e-15)


def test_mcnemar_of_a_textbook_has_its_p() -> None:
    # 6 discordant pairs all one way: 2 / 64. 1 against 9: 22 / 1024 (Sprent and Smeeton, sign test).
    assert mcnemar(0, 6) == 2 / 64
    assert mcnemar(1, 9) == 22 / 1024


def test_mcnemar_takes_more_pairs_than_a_float_has_room_for() -> None:
    assert mcnemar(3000, 3000) == 1.0
    assert 0 < mcnemar(2800, 3200) < 1e-6


def test_no_number_of_pairs_below_six_can_tell() -> None:
    assert mcnemar(5, 0) > 0.05 >= mcnemar(6, 0)


def test_two_equal_arms_are_called_different_no_more_often_than_alpha_says() -> None:
    """The exact test under its null: runs are drawn anew for both arms, scenarios are unlike."""
    chance = random.Random(14)
    shares = [chance.betavariate(0.4, 0.4) for _ in range(30)]
    alarms, experiments = 0, 600
    values: list[float] = []
    for _ in range(experiments):
        seen = discordance(
            (chance.random() < share, chance.random() < share) for share in shares for _ in range(4)
        )
        values.append(mcnemar(seen.first, seen.second))
        alarms += values[-1] <= 0.05
    low, high = wilson(alarms, experiments) or (0, 1)
    assert low <= 0.05, f"{alarms} false alarms of {experiments}"
    assert high > 0.005, "a test that never speaks is no test"
    # The p of an exact test is never too small: at every level no more often under it than the level says.
    for level in (0.1, 0.3, 0.5, 0.8):
        assert sum(value <= level for value in values) / experiments <= level + 0.06


@pytest.mark.slow
def test_the_cluster_interval_holds_the_truth_where_an_interval_of_single_runs_does_not() -> None:
    chance = random.Random(15)
    truth, held, held_by_wilson, experiments = 0.5, 0, 0, 120
    for number in range(experiments):
        shares = [chance.betavariate(0.3, 0.3) for _ in range(30)]
        runs = [[float(chance.random() < share) for _ in range(10)] for share in shares]
        low, high = cluster_interval(runs, seed=number) or (0, 0)
        held += low <= truth <= high
        single = wilson(int(sum(map(sum, runs))), 300) or (0, 0)
        held_by_wilson += single[0] <= truth <= single[1]
    assert held / experiments > 0.87
    assert held_by_wilson / experiments < 0.75


@pytest.mark.parametrize("scenarios", [1, 2, 5])
def test_few_scenarios_say_nothing_of_others_however_often_they_are_run(scenarios: int) -> None:
    assert cluster_interval([[1.0] * 50] * scenarios) is None
    sure = compared({("full", "bare"): [[(True, False)] * 50] * scenarios})[0]
    assert (sure.interval, sure.answer) == ((-1.0, 1.0), "different here")


def test_six_scenarios_that_agree_say_so() -> None:
    assert cluster_interval([[1.0]] * 6) == (1.0, 1.0)
    assert compared({("full", "bare"): [[(True, False)] * 2] * 6})[0].answer == "different"


def test_pass_power_is_the_share_of_all_choices_of_k_runs_that_all_passed() -> None:
    runs = [True, True, False, True, True, False, True]
    chosen = list(permutations(range(len(runs)), 3))
    all_passed = sum(all(runs[at] for at in pick) for pick in chosen) / len(chosen)
    assert pass_power([(sum(runs), len(runs))], 3) == pytest.approx(all_passed)
    assert pass_power([(2, 2)], 3) is None


def test_wilson_says_what_26_single_runs_can_show() -> None:
    assert wilson(14, 26) == pytest.approx((0.355, 0.712), abs=0.001)
    assert wilson(26, 26) == pytest.approx((0.871, 1.0), abs=0.001)


def test_a_number_of_a_beta_belongs_to_its_words_and_numbers_have_its_mean() -> None:
    assert beta(2.0, 3.0, "model", 7) == beta(2.0, 3.0, "model", 7)
    drawn = [beta(0.4, 0.6, "model", at) for at in range(4000)]
    assert sum(drawn) / len(drawn) == pytest.approx(0.4, abs=0.03)


def test_numbers_from_a_hash_are_spread_evenly_and_are_the_same_on_every_machine() -> None:
    draws = [uniform("model", seed, "class") for seed in range(4000)]
    assert sum(draws) / len(draws) == pytest.approx(0.5, abs=0.02)
    assert (
        max(abs(sum(draw < level / 10 for draw in draws) / 4000 - level / 10) for level in range(1, 10))
        < 0.025
    )
    assert uniform("model", 7, "malformed") == 0.7153687678999999
