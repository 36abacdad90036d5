from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Dict, List, Literal, Optional, Union  # noqa: UP035  # what users' tools say

from statek_sim.runtime.tools.spec import read_tool_docstring, tool_spec, tool_variant
from statek_sim.values import JSON
from tests.tables import table_test


class Colour(enum.Enum):
    RED = 1


class Owner:
    pass


def properties(function: Callable[..., object], *, union_hints: bool = True) -> JSON:
    spec: Any = tool_spec(function, union_hints=union_hints)
    result: JSON = spec["function"]["parameters"]["properties"]
    return result


def test_a_documented_tool_has_the_whole_wire_form() -> None:
    def claim(owner: str, limit: int = 3, *args: object, _context: object = None, **kwargs: object) -> None:
        """Claim work
        for an owner.

        More text.

        Args:
            owner (str): Who claims.
            limit: How many items
                at most.
            _context: Injected.

        Returns:
            None: nothing.
        """

    assert tool_spec(claim, union_hints=True) == {
        "type": "function",
        "function": {
            "name": "claim",
            "description": "Claim work for an owner.",
            "parameters": {
                "type": "object",
                "properties": {
                    "owner": {"type": "string", "description": "Who claims."},
                    "limit": {"type": "integer", "description": "How many items at most."},
                },
                "required": ["owner"],
            },
        },
    }


def test_a_tool_without_docstring_and_parameters_is_bare() -> None:
    def poll(**kwargs: object) -> None:
        pass

    assert tool_spec(poll, union_hints=True) == {
        "type": "function",
        "function": {"name": "poll", "description": "", "parameters": {"type": "object", "properties": {}}},
    }


def test_one_undocumented_parameter_costs_all_descriptions_and_the_second_line() -> None:
    def claim(owner: str, limit: int, **kwargs: object) -> None:
        """Claim work
        for an owner.

        Args:
            owner: Who claims.
        """

    assert read_tool_docstring(claim).summary == "Claim work"
    assert properties(claim) == {"owner": {"type": "string"}, "limit": {"type": "integer"}}


def test_entries_indented_by_two_are_not_seen() -> None:
    def claim(owner: str, **kwargs: object) -> None:
        """Claim.

        Args:
          owner: Who claims.
        """

    assert properties(claim) == {"owner": {"type": "string"}}


def test_an_undescribed_entry_has_an_empty_description() -> None:
    def claim(owner, **kwargs):  # type: ignore[no-untyped-def]
        """Claim.

        Args:
            owner:
        """

    assert properties(claim) == {"owner": {"type": "string", "description": ""}}


def test_the_managed_id_of_a_subtask_needs_no_documentation() -> None:
    def research(topic: str, id: str | None = None) -> None:  # noqa: A002
        """Research a
        topic.

        Args:
            topic: What about.
        """

    vars(research)["__is_subtask__"] = True
    assert read_tool_docstring(research).summary == "Research a topic."


@table_test(
    ("hint", "name"),
    [
        *((str, "string"), (int, "integer"), (float, "number"), (bool, "boolean"), (None, "null")),
        *((list, "array"), (tuple, "array"), (set, "array"), (frozenset, "array"), (dict, "object")),
        *((List[int], "array"), (Dict[str, int], "object")),  # noqa: UP006
        *((list[int], "array"), (dict[str, int], "object")),
        *((tuple[int, ...], "array"), (Mapping[str, int], "array"), (Callable[[int], str], "array")),
        *((Optional[int], "integer"), (Union[None, float], "number"), (Union[str, int], "string")),  # noqa: UP007, UP045
        *(
            (Literal["a"], "array"),
            (Colour, "string"),
            (Owner, "string"),
            (Any, "string"),
            (object, "string"),
        ),
        *(("int", "integer"), ("list[str]", "array"), ("Optional[int]", "integer")),
    ],
)
def test_hints_map_to_json_schema_types(hint: object, name: str) -> None:
    def tool(value, **kwargs):  # type: ignore[no-untyped-def]
        pass

    tool.__annotations__ = {"value": hint}
    assert properties(tool) == {"value": {"type": name}}


def test_a_union_written_with_a_bar_is_an_array_before_1_4() -> None:
    def tool(a: int | None, b: dict[str, int] | None, **kwargs: object) -> None:
        pass

    assert properties(tool, union_hints=True) == {"a": {"type": "integer"}, "b": {"type": "object"}}
    assert properties(tool, union_hints=False) == {"a": {"type": "array"}, "b": {"type": "array"}}


def test_one_hint_that_does_not_resolve_makes_every_parameter_a_string() -> None:
    def tool(a, b, **kwargs):  # type: ignore[no-untyped-def]
        pass

    tool.__annotations__ = {"a": "Missing", "b": "int"}
    assert properties(tool) == {"a": {"type": "string"}, "b": {"type": "string"}}


def test_the_spec_of_a_function_is_built_once() -> None:
    def tool(**kwargs: object) -> None:
        pass

    assert tool_spec(tool, union_hints=True) is tool_spec(tool, union_hints=True)


@table_test(
    ("text", "variant"),
    [
        ("plain", "plain"),
        ("VARIANTS/:default/tool:for tools", "for tools"),
        ("VARIANTS/:default/other:x", "default"),
        ("VARIANTS/other:x", ""),
        ("  VARIANTS/TOOL:a/tool:b", "b"),
        ("VARIANTS/", "VARIANTS/"),
    ],
)
def test_a_text_with_variants_gives_its_tool_variant(text: str, variant: str) -> None:
    assert tool_variant(text) == variant
