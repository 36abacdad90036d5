"""The checker of rescue parsers: ours passes it, and each way to make a call up is found with its shortest text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.errors import BadInput, ContractViolation
from statek_sim.rescue import rescue
from statek_sim.values import JSON
from tests.rescue.contract import Parser, Said, check_rescue_parser

Tools = Sequence[Mapping[str, JSON]]


def _ours() -> Parser:
    return lambda text, tools: [(call.name, call.arguments) for call in rescue(text, tools).calls]


def test_ours_reads_every_rendering_and_makes_nothing_up() -> None:
    check_rescue_parser(_ours, reads=list(RENDERINGS))


def test_a_parser_that_ends_the_stack_is_found() -> None:
    def parse(text: str, tools: Tools) -> Said:
        json.loads(text) if text.startswith("[[") else None
        return []

    with pytest.raises(
        ContractViolation, match=r"^100 KB of open brackets, .*: the parser raised RecursionError: "
    ):
        check_rescue_parser(lambda: parse)


def test_a_greedy_parser_is_found_with_its_shortest_text() -> None:
    def parse(text: str, tools: Tools) -> Said:
        found = re.search(r'"name": "(\w+)"', text)
        return [(found[1], {})] if found else []

    with pytest.raises(ContractViolation) as violation:
        check_rescue_parser(lambda: parse)
    assert str(violation.value) == (
        "a call in 'json with parameters', cut, '{\"name\": \"look_up\"': the parser gave look_up({}), "
        'expected look_up({"city": "Oslo"}) or none'
    )


def test_a_parser_that_gives_something_else_than_pairs_is_told_what_is_expected() -> None:
    def parse(text: str, tools: Tools) -> Any:
        return [{"name": "look_up", "arguments": {}}] if text.startswith('{"name"') else []

    with pytest.raises(ContractViolation, match=r"expected a list of pairs, a name and its arguments$"):
        check_rescue_parser(lambda: parse)


def test_a_parser_that_completes_what_is_cut_is_found() -> None:
    def parse(text: str, tools: Tools) -> Said:
        for end in ("", '"', '"}', '"}}', "}", "}}"):
            try:
                value = json.loads(text + end)
            except ValueError:
                continue
            if isinstance(value, dict) and value.get("name") == "look_up" and "arguments" in value:
                return [("look_up", value["arguments"])]
        return []

    with pytest.raises(
        ContractViolation, match=r"^a call in 'arguments in a string', cut, .*: the parser gave look_up\("
    ):
        check_rescue_parser(lambda: parse)


def test_a_parser_that_reads_nothing_is_found_only_where_it_claims_to_read() -> None:
    check_rescue_parser(lambda: lambda text, tools: [])
    with pytest.raises(
        ContractViolation, match=r"^a call in 'hermes', .*: the parser gave no call, expected look_up"
    ):
        check_rescue_parser(lambda: lambda text, tools: [], reads=["hermes"])


def test_a_parser_with_a_memory_is_found() -> None:
    made: list[int] = []

    def make() -> Parser:
        made.append(1)
        number = len(made)
        return lambda text, tools: (
            [("look_up", {})] if number == 2 and text == RENDERINGS["json"]("look_up", {}) else []
        )

    with pytest.raises(ContractViolation, match=r"a fresh parser gave other calls$"):
        check_rescue_parser(make)


def test_a_rendering_that_does_not_exist_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"Did you mean 'hermes'\?$"):
        check_rescue_parser(_ours, reads=["herms"])
