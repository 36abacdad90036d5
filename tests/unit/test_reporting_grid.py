"""Tables keep their width."""

from __future__ import annotations

from rich.text import Text

from statek_sim.reporting.text_format import fits, lay_out, shorten
from tests.tables import table_test


def _rows(*rows: tuple[str, str, str]) -> list[list[Text]]:
    return [
        [Text(name, justify="left"), Text(number), Text(mark, justify="left")] for name, number, mark in rows
    ]


def test_names_stand_left_and_numbers_right() -> None:
    lines = lay_out(
        _rows(("scenario", "tokens", ""), ("a/b", "1,234", "over"), ("a/longer", "5", "")), width=80
    )
    assert [line.plain for line in lines] == [
        "scenario  tokens",
        "a/b        1,234  over",
        "a/longer       5",
    ]


def test_the_first_column_gives_way() -> None:
    lines = lay_out(_rows(("suite/a-very-long-name[docs]", "1,234", "over")), width=32)
    assert lines[0].plain == "suite/a-very..docs]  1,234  over"
    assert len(lines[0].plain) == 32


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
    rows = _rows(("suite/scenario[docs]", "1,234", "over"))
    assert fits(rows, width=23, first=10)
    assert not fits(rows, width=22, first=10)
    assert fits(rows, width=33, first=99)


def test_a_name_keeps_its_beginning_and_end_however_narrow_the_screen() -> None:
    lines = lay_out(_rows(("suite/scenario[docs]", "1,234", "over")), width=5)
    assert lines[0].plain == "suite/s..cs]  1,234  over"
