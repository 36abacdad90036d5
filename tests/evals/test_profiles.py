"""Profile files: every rate says where it comes from, and shipped ones are what the fit gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from statek_sim.cli.app import app
from statek_sim.errors import BadInput
from statek_sim.evals.models.chance import beta_quantile
from statek_sim.evals.models.fitting import Counted, fit_beta
from statek_sim.evals.models.profile import HEEDS, UNREAD_CLASSES
from statek_sim.evals.models.profile_file import load_profile, read_profile, shipped
from statek_sim.evals.models.profile_text import profile_text
from statek_sim.evals.published.fit import IMPUTED, MALFORMED_SHARE, NO_RESCUE
from statek_sim.evals.published.forge import published, published_of
from statek_sim.evals.published.shipped import SHIPPED, refitted

MINISTRAL = "ministral-3-8b-instruct"


def text_of(name: str = MINISTRAL) -> str:
    return profile_text(load_profile(name))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('label = "assumed"', 'label = "fitted"', "so that it needs n"),
        ("n = 1300", "", "so that it needs n"),
        ('label = "fitted"', 'label = "guessed"', "Input should be 'measured', 'fitted' or 'assumed'"),
        ('name = "loop"', 'name = "repeated_call"', "it is there twice"),
        ("window = 32768", "window = 32768\nspeed = 3", "speed: Extra inputs are not permitted"),
        ('name = "heeds_nudge"', 'name = "heeds_nudges"', "Did you mean 'heeds_nudge'"),
        ('dialect = "mistral 11"', 'dialect = "mistral 12"', "expected one of"),
        ("fence = 3.0", "fence = -3.0", "expected 0 or more"),
        ("beta = [", "beta = [-", "expected two numbers above 0"),
    ],
)
def test_a_profile_that_does_not_say_where_a_rate_comes_from_or_says_nonsense_is_refused(
    old: str, new: str, said: str
) -> None:
    text = text_of()
    assert old in text
    with pytest.raises(BadInput, match=said) as refused:
        read_profile(text.replace(old, new, 1), "mine.toml")
    assert str(refused.value).startswith("mine.toml: ")


def test_a_profile_comes_back_from_its_own_text() -> None:
    for name in shipped():
        assert read_profile(text_of(name), name) == load_profile(name)


def test_an_unknown_profile_is_named_with_the_ones_there_are() -> None:
    with pytest.raises(BadInput, match=r"no profile is called 'ministral'.*lfm2\.5-8b-a1b"):
        load_profile("ministral")


def test_a_shipped_profile_is_what_the_fit_gives() -> None:
    assert read_profile(profile_text(refitted(MINISTRAL)), "") == load_profile(MINISTRAL)
    assert set(SHIPPED) == set(shipped())


def test_a_fit_that_was_written_in_part_is_written_again_and_nothing_else_replaced(tmp_path: Path) -> None:
    command = ["evals", "fit", "ministral-3-8b-instruct", "--write", str(tmp_path)]
    file = tmp_path / "ministral-3-8b-instruct.toml"
    for _ in range(2):
        done = CliRunner().invoke(app, command)
        assert (done.exit_code, done.output) == (0, "ministral-3-8b-instruct: as shipped\n")
    file.write_text("# Mine.\n", "utf-8")
    refused = CliRunner().invoke(app, command)
    assert (refused.output, str(refused.exception)) == (
        "",
        f"{file}: is there already, and was not written by this command; name another file",
    )


def test_the_counts_that_are_kept_add_up_to_the_published_sums() -> None:
    sums = {
        one.model: (sum(one.bare_completed), sum(one.bare_correct), sum(one.harness_correct))
        for one in published()
    }
    assert sums == {
        "Ministral-3-8B-Instruct-2512-Q8_0": (690, 429, 1053),
        "LFM2.5-8B-A1B-Q4_K_M": (510, 191, 750),
        "gemma-4-31B-it-Q4_K_M": (1200, 1021, 1182),
    }
    assert all(
        right <= ended <= one.runs
        for one in published()
        for ended, right in zip(one.bare_completed, one.bare_correct, strict=True)
    )


def test_the_fit_finds_the_beta_that_counts_were_drawn_from() -> None:
    chance = random.Random(17)
    a, b, turns = 0.4, 0.8, 4
    counts = []
    for _ in range(80):
        q = beta_quantile(chance.random(), a, b)
        well = (1 - q) ** turns
        counts.append(Counted(sum(chance.random() < well for _ in range(50)), 50, turns))
    found = fit_beta(counts)
    assert found.interval[0] <= a / (a + b) <= found.interval[1]
    assert found.mean == pytest.approx(a / (a + b), abs=0.12)
    assert 0.4 < (found.a + found.b) / (a + b) < 2.5


def test_own_propensities_give_the_counts_back() -> None:
    counts = [Counted(0, 50, 3), Counted(50, 50, 3), Counted(25, 50, 2)]
    never, always, half = fit_beta(counts).own
    assert never > 0.75
    assert always < 0.02
    assert (1 - half) ** 2 == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_two_classes_that_are_counted_together_make_up_what_was_counted_in_every_scenario(name: str) -> None:
    profile = load_profile(name)
    early, malformed = (
        next(one for one in profile.classes if one.failure == failure) for failure in UNREAD_CLASSES
    )
    assert (early.a, early.b) == (malformed.a, malformed.b)
    assert early.share + malformed.share == pytest.approx(1)
    assert malformed.mean == pytest.approx(MALFORMED_SHARE * early.a / (early.a + early.b))
    for scenario in ("of one's own", "another", *profile.scenarios):
        one, other = (profile.propensity(failure, scenario, "easy") for failure in UNREAD_CLASSES)
        assert one + other <= 1 + 1e-6
        assert other == pytest.approx((one + other) * MALFORMED_SHARE, abs=1e-5)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_labels_count_what_is_published_and_say_what_is_imputed(name: str) -> None:
    counts, profile = published_of(SHIPPED[name].model), load_profile(name)
    for tier in ("easy", "medium", "hard"):
        (origin,) = [one.origin for one in profile.classes if one.tier == tier]
        ended = zip(counts.scenarios, counts.bare_completed, strict=True)
        assert origin.n == max(1, sum(count for one, count in ended if one.tier == tier))
        assert IMPUTED in origin.source
    unread = [one.origin.n for one in profile.classes if one.failure in UNREAD_CLASSES]
    assert set(unread) == {counts.in_all - counts.runs * sum(one.fails_first for one in counts.scenarios)}
    assert NO_RESCUE in profile.rates[HEEDS].origin.source
