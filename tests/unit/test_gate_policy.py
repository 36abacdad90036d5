"""Reading policy files: values, and what is wrong in them by path and line."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest

from statek_sim.errors import BadPolicy
from statek_sim.gate.policy import (
    GENERAL,
    MAX_BYTES,
    POLICIES_DIR,
    SelectText,
    policy_schema,
    read_policy,
    shipped_policy,
)
from statek_sim.harness.limits import LimitName
from statek_sim.harness.preset import BUILT_IN
from tests.says import line_with, says
from tests.tables import table_test
from tests.unit.gate_samples import written

EVERYTHING = """\
version = 1
prices = "prices"

[[rule]]
name = "work finishes"
select = {tags = ["healthy"], without_tags = ["slow"]}
must = "finish"
headroom_percent = {max_turns = 20}

[[rule]]
name = "loops stop"
select = {scenarios = ["workloads/loop", "storm"]}
must = "stop"
within_turns = 3
within_tokens = 5000
within_cost = "0.05"

[[rule]]
name = "no claim leaks"
select = {}
claims_leak = false

[baseline]
worse_by_percent = 10
"""


def problems(folder: Path, text: str) -> list[str]:
    """Return the lines that a policy is refused with, without its folder."""
    path = written(folder, "policy.toml", text)
    with pytest.raises(BadPolicy) as caught:
        read_policy(path)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def test_a_policy_is_read_as_values(tmp_path: Path) -> None:
    policy = read_policy(written(tmp_path, "policy.toml", EVERYTHING))
    finish, stop, claims = policy.rules
    assert (finish.must, finish.select) == ("finish", SelectText(tags=("healthy",), without_tags=("slow",)))
    assert [finish.headroom(limit) for limit in (LimitName.MAX_TURNS, LimitName.MAX_TOKEN_USAGE)] == [20, 0]
    assert (stop.within_turns, stop.within_tokens, stop.most_cost) == (3, 5000, Decimal("0.05"))
    assert (policy.lines[stop.name], claims.claims_leak, claims.must) == (10, False, None)
    assert (policy.worse_by_percent, policy.prices) == (10, tmp_path / "prices")


def test_one_headroom_is_that_of_every_limit(tmp_path: Path) -> None:
    text = EVERYTHING.replace("{max_turns = 20}", "15")
    finish = read_policy(written(tmp_path, "policy.toml", text)).rules[0]
    assert {finish.headroom(limit) for limit in LimitName} == {15}


@table_test(
    ("old", "new", "line", "facts"),
    [
        ("version = 1", "version = 2", 1, "version; expected 1; got 2"),
        (
            'must = "finish"',
            'must = "finsh"',
            7,
            "rule[0].must; expected 'finish' or 'stop'; got 'finsh'; 'finish'?",
        ),
        ('name = "loops stop"', "name = 3", 11, 'rule[1].name; expected text; got 3; "3"; quotes'),
        ("tags =", "tag =", 6, "key 'tag' in rule[0].select; 'tags'?"),
        (
            "{max_turns = 20}",
            "{max_turn = 20}",
            8,
            "key 'max_turn' in rule[0].headroom_percent; 'max_turns'?",
        ),
        (
            "{max_turns = 20}",
            "{max_turns = 100}",
            8,
            "rule[0].headroom_percent.max_turns; at most 99; got 100",
        ),
        ("{max_turns = 20}", '"20"', 8, "rule[0].headroom_percent; expected a mapping; got '20'"),
        ("within_turns = 3", "within_turns = 0", 14, "rule[1].within_turns; at least 1; got 0"),
        ('"0.05"', "0.05", 16, 'rule[1].within_cost; expected text; got 0.05; "0.05"; quotes'),
        ('"0.05"', '"5 cents"', 16, "rule[1].within_cost; amount; string; \"0.05\"; got '5 cents'"),
        ("select = {}", "", 18, "missing key 'select' in rule[2]"),
        ("claims_leak = false", "", 18, "'no claim leaks'; no requirement; must or claims_leak = false"),
        ('must = "stop"', 'must = "finish"', 14, "'loops stop'; within_turns requires must = 'stop'"),
        ('"loops stop"', '"work finishes"', 11, "'work finishes'; duplicate"),
        ('prices = "prices"', "", 16, "'loops stop'; within_cost requires prices"),
        ("[baseline]", "[base line]", 23, "TOML; ']'; end; table"),
        ("[baseline]\nworse_by_percent = 10", "rule = [", 24, "TOML; value"),
    ],
)
def test_what_is_wrong_is_told_by_path_and_line(
    tmp_path: Path, old: str, new: str, line: int, facts: str
) -> None:
    found = problems(tmp_path, EVERYTHING.replace(old, new, 1))
    assert says(found[0], f"policy.toml:{line}", *facts.split("; "))


def test_everything_wrong_is_told_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    text = EVERYTHING.replace('"finish"', "3").replace("= 5000", "= -1").replace("[baseline]", "[basline]")
    assert [line.split(": ")[0] for line in problems(tmp_path, text)] == [
        "policy.toml:7",
        "policy.toml:15",
        "policy.toml:23",
    ]


def test_a_policy_without_rules_is_refused(tmp_path: Path) -> None:
    for text, fact in (("version = 1\n", "missing"), ("rule = []\n", "empty list")):
        [problem] = problems(tmp_path, text)
        assert says(problem, "policy.toml:1", "rule", fact)


def test_a_file_that_cannot_be_a_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"version = 1\n\xff")
    with pytest.raises(BadPolicy, match=line_with("bytes.toml:2", "UTF-8", "0xff", "TOML")):
        read_policy(tmp_path / "bytes.toml")
    with pytest.raises(BadPolicy, match=line_with("nothing.toml: ", "file or folder", "TOML")):
        read_policy(tmp_path / "nothing.toml")
    with pytest.raises(BadPolicy, match=f"{MAX_BYTES} bytes"):
        read_policy(written(tmp_path, "large.toml", "#" * (MAX_BYTES + 1)))


def test_every_shipped_policy_can_be_read_and_keeps_to_the_schema() -> None:
    paths = sorted(POLICIES_DIR.glob("*.toml"))
    assert {path.stem for path in paths} <= {GENERAL, *BUILT_IN}
    for path in paths:
        assert read_policy(path).rules
        jsonschema.validate(tomllib.loads(path.read_text("utf-8")), policy_schema())


def test_a_preset_file_is_judged_by_the_general_policy() -> None:
    assert shipped_policy("own.env").stem == GENERAL
    assert shipped_policy("general").stem == GENERAL


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    jsonschema.Draft202012Validator.check_schema(policy_schema())
    with pytest.raises(jsonschema.ValidationError, match=r"finsh"):
        jsonschema.validate(tomllib.loads(EVERYTHING.replace('"finish"', '"finsh"')), policy_schema())
    jsonschema.validate(tomllib.loads(EVERYTHING), policy_schema())
