"""Profile files: a profile says why its rates are assumed, and nonsense in one is refused with its place."""

from __future__ import annotations

from importlib.resources import files

import pytest

from statek_sim.errors import BadInput
from statek_sim.evals.profile import UNREAD_CLASSES, load_profile, read_profile, shipped
from tests.tables import table_test

MINISTRAL = "ministral-3-8b-instruct"


@table_test(
    ("old", "new", "said"),
    [
        ("assumed = ", "# assumed = ", "assumed: Field required"),
        ('name = "loop"', 'name = "repeated_call"', "listed twice"),
        ("window = 32768", "window = 32768\nspeed = 3", "speed: Extra inputs are not permitted"),
        ("heeds_nudge", "heeds_nudges", "Did you mean 'heeds_nudge'"),
        ("heeds_nudge = 0", "heeds_nudge = 2", "rates.heeds_nudge: Input should be less than or equal to 1"),
        ("stays_in_loop", "# stays_in_loop", "stays_in_loop is missing"),
        ('dialect = "mistral 11"', 'dialect = "mistral 12"', "expected one of"),
        ("fence = 3.0", "fence = -3.0", "damage.fence: Input should be greater than or equal to 0"),
        ("beta = [", "beta = [-", "class.0.beta.0: Input should be greater than 0"),
    ],
)
def test_a_profile_that_does_not_say_why_its_rates_are_assumed_or_says_nonsense_is_refused(
    old: str, new: str, said: str
) -> None:
    text = (files("statek_sim.evals") / "profiles" / f"{MINISTRAL}.toml").read_text("utf-8")
    assert old in text
    with pytest.raises(BadInput, match=said) as refused:
        read_profile(text.replace(old, new, 1), "mine.toml")
    assert str(refused.value).startswith("mine.toml: ")


def test_an_unknown_profile_is_named_with_the_ones_there_are() -> None:
    with pytest.raises(BadInput, match=r"unknown profile 'ministral'.*lfm2\.5-8b-a1b"):
        load_profile("ministral")


@pytest.mark.parametrize("name", shipped())
def test_two_classes_without_a_readable_call_divide_one_beta_in_every_scenario(name: str) -> None:
    profile = load_profile(name)
    early, malformed = (
        next(one for one in profile.classes if one.failure == failure) for failure in UNREAD_CLASSES
    )
    assert early.beta == malformed.beta
    assert early.share + malformed.share == pytest.approx(1)
    for scenario in ("one", "another"):
        first, second = (profile.propensity(failure, scenario, "easy") for failure in UNREAD_CLASSES)
        assert second == pytest.approx((first + second) * malformed.share, abs=1e-5)
