"""Tables keep their width, and never cut a name."""

from __future__ import annotations

from rich.text import Text

from statek_sim.reporting.table import Code, Table, shorten
from tests.tables import table_test


def _table(*rows: tuple[str, str, str]) -> Table:
    return Table(head=("name", "tokens", ""), rows=rows, left=("",))


def test_names_stand_left_and_numbers_right() -> None:
    lines = _table(("a/b", "1,234", "over"), ("a/longer", "5", "")).lines(width=80)
    assert [line.plain for line in lines] == [
        "name      tokens",
        "a/b        1,234  over",
        "a/longer       5",
    ]


def test_a_name_that_does_not_fit_stands_whole_on_a_line_of_its_own() -> None:
    lines = _table(("suite/a-very-long-name[docs]", "1,234", "over"), ("a/b", "5", "")).lines(width=33)
    assert [line.plain for line in lines[1:]] == [
        "suite/a-very-long-name[docs]",
        "                      1,234  over",
        "a/b                       5",
    ]


@table_test(
    ("width", "heads"), [(26, ["name", "tokens", ""]), (25, ["name", "tokens"]), (3, ["name", "tokens"])]
)
def test_a_table_has_the_columns_that_there_is_room_for(width: int, heads: list[str]) -> None:
    table = _table(("suite/scenario", "1,234", "over"))
    assert table.widest([("tokens", ""), ("tokens",)], width=width, first=12).head == heads


def test_markdown_shows_cells_letter_by_letter() -> None:
    table = Table(
        head=("name", "tokens", "note"),
        rows=[(Code("a|b"), "5", "<*>"), (Text("all", "bold red"), "5", "")],
        left=("note",),
    )
    assert table.markdown().splitlines() == [
        "| name | tokens | note |",
        "| :--- | ---: | :--- |",
        "| `a\\|b` | 5 | \\<\\*\\> |",
        "| **all** | 5 |  |",
    ]


@table_test(
    ("width", "short"),
    [
        (99, "suite/scenario[docs]"),
        (20, "suite/scenario[docs]"),
        (14, "suite/sc..ocs]"),
        (3, "s.."),
        (1, "."),
        (0, ""),
    ],
)
def test_a_name_is_cut_in_its_middle(width: int, short: str) -> None:
    assert shorten("suite/scenario[docs]", width) == short


def test_rows_fit_when_the_first_column_has_its_room() -> None:
    table = _table(("suite/scenario[docs]", "1,234", "over"))
    assert table.fits(width=24, first=10)
    assert not table.fits(width=23, first=10)
    assert table.fits(width=34, first=99)
