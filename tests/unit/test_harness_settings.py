"""Tests of `statek_sim.harness.settings` and `statek_sim.harness.settings`."""

from __future__ import annotations

from typing import Any

import pytest

from statek_sim.errors import BadSetting
from statek_sim.harness.limits import HarnessLimits
from statek_sim.harness.settings import SETTINGS, VARIABLES, StatekSettings
from tests.tables import table_test


def problem(environ: dict[str, str]) -> str:
    """Return the message that `environ` is refused with."""
    with pytest.raises(BadSetting) as caught:
        StatekSettings.from_env(environ)
    return str(caught.value)


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = StatekSettings.from_env({})
    assert settings == StatekSettings()
    assert settings.harness_limits() == HarnessLimits()
    assert (settings.chat_style, settings.log_level, settings.default_acl_str) == (None, "ERROR", "DENY")
    assert (settings.statek_default_difficulty, settings.python_sandbox_mode) == ("M", "restricted")
    assert settings.python_sandbox_max_source_bytes == 200_000
    assert settings.python_sandbox_max_ast_nodes == 20_000


def test_other_peoples_variables_are_ignored() -> None:
    environ = {"PATH": "/bin", "MAX_TURNS": "9", "MY_STATEK_MAX_TURN": "1", "STATEKX": "1"}
    assert StatekSettings.from_env(environ) == StatekSettings()


def test_every_variable_sets_a_field_and_every_field_has_a_variable() -> None:
    assert {variable.field for variable in VARIABLES.values()} == set(StatekSettings.__annotations__)
    assert len(VARIABLES) == len(SETTINGS) == len(StatekSettings.__annotations__)


@table_test(
    ("name", "text", "field", "value"),
    [
        ("STATEK_MAX_TURNS", "8", "max_turns", 8),
        ("STATEK_MAX_TURNS", " 1_000 ", "max_turns", 1000),
        ("STATEK_MAX_EXCEPTIONS", "0", "max_exceptions", 0),
        ("STATEK_MAX_CONSECUTIVE_EXCEPTIONS", "2", "max_consecutive_exceptions", 2),
        ("STATEK_MAX_TOKEN_USAGE", "60000", "max_token_usage", 60000),
        ("STATEK_LIMIT_EXTENSION_PER_COMPLETION", "0.25", "limit_extension_per_completion", 0.25),
        ("STATEK_PROMPT_FILES_DIR", "prompts", "prompt_files_dir", "prompts"),
        ("STATEK_MODEL_INFO_DIR", "models", "statek_model_info_dir", "models"),
        ("STATEK_CHAT_STYLE", "md_dialog", "chat_style", "MD_DIALOG"),
        ("STATEK_EXAMPLES_STYLE", "Direct", "examples_style", "DIRECT"),
        ("STATEK_XML_BOX_CONSOLE", "console", "xml_box_console", "console"),
        ("STATEK_LOG_LEVEL", "info", "log_level", "INFO"),
        ("STATEK_DEFAULT_ACL", "grant", "default_acl_str", "GRANT"),
        ("STATEK_DEFAULT_DIFFICULTY", "high", "statek_default_difficulty", "high"),
        ("STATEK_RPC_PORT", "8080", "statek_rpc_port", 8080),
        ("STATEK_PYTHON_SANDBOX_MODE", "OFF", "python_sandbox_mode", "off"),
        ("STATEK_PYTHON_SANDBOX_MAX_AST_NODES", "10", "python_sandbox_max_ast_nodes", 10),
        ("STATEK_PYTHON_SANDBOX_ALLOWED_IMPORTS", "re,math", "python_sandbox_allowed_imports", "re,math"),
        ("STATEK_PROVIDER_CONFIG", "p.json", "statek_provider_config", "p.json"),
        ("DEFAULT_LLM_API_PROVIDER", "OPENAI", "default_llm_api_provider", "OPENAI"),
        ("FULL_AGENT_TRACE", "True", "full_agent_trace", True),
    ],
)
def test_a_variable_is_read_as_statek_reads_it(name: str, text: str, field: str, value: object) -> None:
    read = getattr(StatekSettings.from_env({name: text}), field)
    assert (read, type(read)) == (value, type(value))


@table_test("text", ["", "five", "-1", "2.0", "nan", "9223372036854775808", "9" * 5000])
def test_a_wrong_number_names_the_variable_the_value_and_what_was_expected(text: str) -> None:
    expected = f"STATEK_MAX_TURNS={text!r}: expected a whole number from 0 to 2**63 - 1"
    assert problem({"STATEK_MAX_TURNS": text}) == expected


@table_test("text", ["", "half", "-0.1", "nan", "inf", "1e7"])
def test_a_wrong_extension_is_refused(text: str) -> None:
    expected = f"STATEK_LIMIT_EXTENSION_PER_COMPLETION={text!r}: expected a number from 0 to 1000000"
    assert problem({"STATEK_LIMIT_EXTENSION_PER_COMPLETION": text}) == expected


@table_test(
    ("name", "text", "expected"),
    [
        ("STATEK_CHAT_STYLE", "", "CONSOLE, MARKDOWN, MD_DIALOG or DIRECT"),
        ("STATEK_LOG_LEVEL", "debug", "INFO, WARNING, ERROR or CRITICAL"),
        ("STATEK_DEFAULT_ACL", "ALLOW", "GRANT or DENY"),
        ("STATEK_DEFAULT_DIFFICULTY", "X", "L, M, H, low, medium or high"),
        ("STATEK_RPC_PORT", "70000", "a port number from 0 to 65535"),
        ("STATEK_PYTHON_SANDBOX_MODE", "on", "restricted or off"),
        ("FULL_AGENT_TRACE", "1", "true or false"),
    ],
)
def test_a_wrong_choice_lists_the_choices(name: str, text: str, expected: str) -> None:
    assert problem({name: text}) == f"{name}={text!r}: expected {expected}"


@table_test(
    ("name", "meant"),
    [
        ("STATEK_MAX_TURN", "STATEK_MAX_TURNS"),
        ("STATEK_MAX_TOKENS", "STATEK_MAX_TOKEN_USAGE"),
        ("STATEK_LOGLEVEL", "STATEK_LOG_LEVEL"),
        ("STATEK_CONSECUTIVE_EXCEPTIONS", "STATEK_MAX_CONSECUTIVE_EXCEPTIONS"),
        ("statek_max_turns", "STATEK_MAX_TURNS"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_name_that_was_meant(name: str, meant: str) -> None:
    assert problem({name: "1"}) == f"{name}: not a STATEK variable. Did you mean {meant!r}?"


def test_a_name_near_nothing_is_refused_without_a_guess() -> None:
    assert problem({"STATEK_FOO": "1"}) == "STATEK_FOO: not a STATEK variable."


def test_a_prefix_where_statek_has_none_is_explained() -> None:
    bare = "DEFAULT_LLM_API_PROVIDER"
    expected = f"STATEK_{bare}: STATEK reads this variable without the prefix: {bare!r}"
    assert problem({f"STATEK_{bare}": "OPENAI"}) == expected


def test_every_problem_is_reported_ordered_by_name() -> None:
    lines = problem({"STATEK_MAX_TURNS": "x", "STATEK_FOO": "", "STATEK_LOG_LEVEL": "y"}).splitlines()
    assert [line.partition("=")[0].partition(":")[0] for line in lines] == [
        "STATEK_FOO",
        "STATEK_LOG_LEVEL",
        "STATEK_MAX_TURNS",
    ]


@table_test("wrong", [True, "5", None, -1, 5.0])
def test_a_wrong_argument_is_refused_like_a_wrong_variable(wrong: Any) -> None:
    with pytest.raises(BadSetting) as caught:
        StatekSettings(max_turns=wrong)
    assert str(caught.value) == f"max_turns={wrong!r}: expected a whole number from 0 to 2**63 - 1"


def test_an_unknown_argument_is_refused_with_the_name_that_was_meant() -> None:
    expected = r"^StatekSettings has no setting 'max_turn'\. Did you mean 'max_turns'\?$"
    with pytest.raises(BadSetting, match=expected):
        StatekSettings(max_turn=5)


def test_a_wrong_default_difficulty_is_refused() -> None:
    expected = r"^statek_default_difficulty='zz': expected L, M, H, low, medium or high$"
    with pytest.raises(BadSetting, match=expected):
        StatekSettings(statek_default_difficulty="zz")
