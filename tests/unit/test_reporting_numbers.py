"""Numbers for people."""

from __future__ import annotations

from statek_sim.reporting import text_format as numbers
from tests.tables import table_test


@table_test(
    ("value", "shown"),
    [
        (1.5816, "x1.58 over"),
        (0.5664, "x0.57 under"),
        (1.004, "x1.00"),
        (0.996, "x1.00"),
        (1234.5, "x1,234.50 over"),
        (None, "-"),
    ],
)
def test_a_ratio_says_which_way_the_estimate_is_wrong(value: float | None, shown: str) -> None:
    assert numbers.ratio(value) == shown


def test_counts_have_thousands_separators_and_a_dash_for_nothing() -> None:
    assert [numbers.count(value) for value in (0, 9812, 1234567, None)] == ["0", "9,812", "1,234,567", "-"]


def test_a_difference_always_has_its_sign() -> None:
    assert [numbers.signed(value) for value in (2139.6, -310.2)] == ["+2,140", "-310"]


def test_one_of_something_is_not_plural() -> None:
    assert [numbers.plural(value, "turn") for value in (0, 1, 1204)] == ["0 turns", "1 turn", "1,204 turns"]


def test_a_share_of_nothing_is_no_number() -> None:
    assert [numbers.share(1, 4), numbers.share(0, 0)] == ["25%", "-"]
