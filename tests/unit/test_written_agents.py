"""What a scenario's file says of its agents becomes metadata and styles in one place, for every runtime."""

from __future__ import annotations

from typing import Any

from statek_sim.backends.driver import metadata_of, style_of_definitions
from statek_sim.scenario.schema import AgentText
from tests.tables import table_test


def test_metadata_name_the_model_unless_the_file_has_metadata_for_it() -> None:
    assert metadata_of(AgentText(model="gpt-4o")) == {"MODEL": "gpt-4o"}
    assert metadata_of(AgentText(metadata={"MODEL": "gpt-5", "DEFAULT_DIFFICULTY": "HIGH"})) == {
        "MODEL": "gpt-5",
        "DEFAULT_DIFFICULTY": "HIGH",
    }


def test_scope_and_temperature_are_metadata_too() -> None:
    text = AgentText(tools_scope="ALL -panic", temperature=0.5)
    assert metadata_of(text) == {"MODEL": "gpt-4o", "LLM_TOOLS_SCOPE": "ALL -panic", "TEMPERATURE": "0.5"}


@table_test(
    ("text", "of_all", "metadata", "definitions"),
    [
        ({"dialog": True, "chat_style": "DIRECT"}, None, "DIRECT", None),
        ({"chat_style": "CONSOLE"}, None, None, "CONSOLE"),
        ({"chat_style": "CONSOLE"}, "CONSOLE", None, None),
        ({}, None, None, None),
    ],
)
def test_a_style_is_given_in_one_way(
    text: dict[str, Any], of_all: str | None, metadata: str | None, definitions: str | None
) -> None:
    agent = AgentText(**text)
    assert metadata_of(agent).get("CHAT_STYLE") == metadata
    assert style_of_definitions(agent, of_all) == definitions
