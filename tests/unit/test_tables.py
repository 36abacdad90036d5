"""Table tests: one test that tries every row."""

from __future__ import annotations

import pytest

from tests.tables import table_test


def test_every_row_is_tried_and_those_that_fail_are_told() -> None:
    tried = []

    @table_test("number, double", [(1, 2), pytest.param(2, 5, id="wrong"), (3, 6), (4, 9)])
    def doubles(number: int, double: int) -> None:
        tried.append(number)
        assert number * 2 == double

    with pytest.raises(BaseExceptionGroup, match=r"^2 of 4 rows failed") as failed:
        doubles()

    assert tried == [1, 2, 3, 4]
    notes = [failure.__notes__ for failure in failed.value.exceptions]
    assert notes == [["row 2 (wrong)"], ["row 4 (number=4, double=9)"]]


def test_one_table_around_another_is_their_product() -> None:
    seen = []

    @table_test("left", "ab")
    @table_test("right", [1, 2])
    def both(left: str, right: int) -> None:
        seen.append((left, right))

    both()
    assert seen == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_rows_are_named_by_ids() -> None:
    @table_test("text", ["x", "y"], ids=["first", "second"])
    def never(text: str) -> None:
        pytest.fail(text)

    with pytest.raises(BaseExceptionGroup) as failed:
        never()
    assert [failure.__notes__ for failure in failed.value.exceptions] == [
        ["row 1 (first)"],
        ["row 2 (second)"],
    ]


def test_a_row_that_has_no_representation_is_named_by_its_type() -> None:
    @table_test("number", [10**5000])
    def never(number: int) -> None:
        pytest.fail("no")

    with pytest.raises(BaseExceptionGroup) as failed:
        never()
    assert [failure.__notes__ for failure in failed.value.exceptions] == [["row 1 (number=a int)"]]


def test_a_row_cannot_be_skipped() -> None:
    @table_test("number", [1, 2])
    def skips(number: int) -> None:
        pytest.skip(f"{number} is not here")

    with pytest.raises(BaseExceptionGroup, match=r"^2 of 2 rows failed"):
        skips()


def test_a_table_without_rows_or_with_marks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the table of a, b has no rows: the test could not fail$"):
        table_test("a, b", [])
    with pytest.raises(ValueError, match=r"^row 1 of a has a mark; only whole tests can have one$"):
        table_test("a", [pytest.param(1, marks=pytest.mark.slow)])


def test_a_table_test_asks_for_fixtures_and_keeps_marks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from tests.tables import table_test

        @pytest.fixture
        def limit():
            return 2

        @pytest.mark.filterwarnings("error")
        @table_test("number", [1, 2, 3])
        def test_small(limit, number):
            assert number <= limit
        """
    )
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*assert 3 <= 2*", "*row 3 (number=3)*"])
