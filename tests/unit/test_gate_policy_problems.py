"""Where values of a TOML text stand."""

from __future__ import annotations

from statek_sim.gate.policy import lines_of
from tests.tables import table_test

TEXT = '''\
# a comment
version = 1

[[rule]]
name = "one"
select = {tags = [
  "healthy",
]}

[[rule]]
name = """
two
"""
[rule.select]
tags = ["x"]
[baseline]
worse_by_percent = 3
'''


@table_test(
    ("keypath", "line"),
    [
        (("version",), 2),
        (("rule",), 4),
        (("rule", 0, "name"), 5),
        (("rule", 0, "select", "tags", 0), 6),
        (("rule", 1), 10),
        (("rule", 1, "name"), 11),
        (("rule", 1, "select", "tags"), 15),
        (("baseline", "worse_by_percent"), 17),
    ],
)
def test_a_value_stands_on_the_first_line_of_its_statement(keypath: tuple[str | int, ...], line: int) -> None:
    assert lines_of(TEXT, [keypath]) == [line]


def test_what_is_nowhere_stands_where_its_longest_known_part_does() -> None:
    assert lines_of(TEXT, [("rule", 1, "must"), ("prices",), ()]) == [10, 1, 1]
