from __future__ import annotations

from collections.abc import Callable

import pytest

from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.tools.spec import ToolsScope, parse_tools_scope, select_tools
from tests.tables import table_test

Tool = Callable[..., object]


def make(name: str, *, system: bool = False, target: object = None, hidden: bool = False) -> Tool:
    def tool(**kwargs: object) -> None:
        pass

    vars(tool).update(tool_system=system, tool_target=target, tool_hidden=hidden)
    tool.__name__ = name
    return tool


def plain(**kwargs: object) -> None:
    pass


SYSTEM = [
    make("panic", system=True),
    make("python_cli", system=True, target={ChatStyle.DIRECT}),
    make("secret", system=True, hidden=True),
]
OWN = [make("fetch"), plain, make("audit", hidden=True), make("brief", system=True)]


def names(scope: str | None, style: ChatStyle | None = None) -> list[str]:
    return [str(getattr(tool, "__name__", "")) for tool in select_tools(scope, OWN, SYSTEM, style)]


def test_a_scope_has_a_category_and_lists() -> None:
    assert parse_tools_scope(" system +a, b -c+d ") == ToolsScope(
        category="SYSTEM", added=("a", "b", "d"), removed=("c",)
    )
    assert parse_tools_scope("  ") == ToolsScope()


@table_test(
    ("text", "message"),
    [
        ("SOME +a", r"^Invalid LLM_TOOLS_SCOPE category: 'SOME'$"),
        ("ALL, +a", r"^Invalid LLM_TOOLS_SCOPE category: 'ALL,'$"),
        ("+", r"^Invalid LLM_TOOLS_SCOPE tool list: ''$"),
        ("+a,,b", r"^Invalid LLM_TOOLS_SCOPE tool list: 'a,,b'$"),
        ("ALL -1x", r"^Invalid LLM_TOOLS_SCOPE tool list: '1x'$"),
        ("+a b", r"^Invalid LLM_TOOLS_SCOPE tool list: 'a b'$"),
    ],
)
def test_a_malformed_scope_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_tools_scope(text)


@pytest.mark.parametrize("scope", [None, "", "  "])
def test_without_a_scope_no_tool_is_offered(scope: str | None) -> None:
    assert names(scope) == []


def test_all_offers_own_tools_then_system_tools_and_never_hidden_ones() -> None:
    assert names("ALL") == ["fetch", "plain", "brief", "panic", "python_cli"]


def test_python_cli_is_offered_in_direct_style_or_without_style() -> None:
    assert names("SYSTEM", ChatStyle.DIRECT) == ["brief", "panic", "python_cli"]
    assert names("SYSTEM", ChatStyle.MARKDOWN) == ["brief", "panic"]
    assert names("SYSTEM") == ["brief", "panic", "python_cli"]


def test_application_offers_tools_that_are_not_system_tools() -> None:
    assert names("APPLICATION") == ["fetch", "plain"]


def test_lists_add_and_remove_and_the_first_of_a_name_stays() -> None:
    assert names("+panic, fetch +panic") == ["panic", "fetch"]
    assert names("ALL -fetch, brief") == ["plain", "panic", "python_cli"]
    assert names("APPLICATION +panic -plain") == ["fetch", "panic"]


def test_an_own_tool_hides_a_system_tool_of_the_same_name() -> None:
    mine = make("panic")
    assert select_tools("ALL", [mine], SYSTEM, ChatStyle.CONSOLE) == (mine,)


@pytest.mark.parametrize("scope", ["+nothing", "ALL -nothing"])
def test_an_unknown_tool_is_refused(scope: str) -> None:
    with pytest.raises(ValueError, match=r"^LLM_TOOLS_SCOPE references unknown tool: 'nothing'$"):
        names(scope)


@pytest.mark.parametrize("name", ["audit", "secret"])
def test_a_hidden_tool_is_unknown(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^LLM_TOOLS_SCOPE references unknown tool: '{name}'$"):
        names(f"+{name}")


def test_removing_a_tool_that_was_not_selected_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^LLM_TOOLS_SCOPE removal references unselected tool: 'panic'$"):
        names("APPLICATION -panic")


@pytest.mark.parametrize("scope", ["+python_cli", "ALL -python_cli"])
def test_naming_python_cli_outside_direct_style_is_refused(scope: str) -> None:
    style = r"<EnumValue ChatStyle\.CONSOLE>"
    with pytest.raises(
        ValueError, match=rf"^LLM_TOOLS_SCOPE tool 'python_cli' is not compatible with chat_style {style}$"
    ):
        names(scope, ChatStyle.CONSOLE)
