"""STATEK's settings, and the `STATEK_*` environment variables that set them.

This module does not read the process environment; `current.py` does.

Source: "Harness Policies", Configure the Harness; behaviour 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass
from enum import StrEnum
from typing import Any, Final, Self

from statek_sim.did_you_mean import closest, suggestion
from statek_sim.errors import BadSetting
from statek_sim.harness.limits import MAX_EXTENSION, MAX_LIMIT, HarnessLimits


class TaskDifficulty(StrEnum):
    """The three task difficulty levels, in ascending order."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


DIFFICULTY_LABELS: Final[Mapping[str, TaskDifficulty]] = {
    label: difficulty for difficulty in TaskDifficulty for label in (difficulty.name[0], difficulty.name)
}
"""Maps every accepted upper-case spelling (`L`, `LOW`) to its difficulty."""


def parse_difficulty(label: str) -> TaskDifficulty:
    """Return the difficulty for L, M, H, low, medium or high, in any letter case; raises ValueError otherwise."""
    try:
        return DIFFICULTY_LABELS[label.strip().upper()]
    except KeyError:
        raise ValueError(f"difficulty {label!r}: expected L, M, H, low, medium or high") from None


PREFIX: Final = "STATEK_"


@dataclass(frozen=True, slots=True)
class Variable:
    """One setting and the environment variable that sets it.

    `read` parses the variable's string, or raises ValueError. `accepts` returns whether a value is valid.
    `expected` describes the valid values for error messages.
    """

    name: str
    field: str
    read: Callable[[str], object]
    accepts: Callable[[object], bool]
    expected: str


def unknown_variable(name: str) -> str:
    """Return the error message for an unknown `STATEK_` variable. It suggests a known name if one is similar."""
    bare = name.upper().removeprefix(PREFIX)
    if bare in VARIABLES:
        return f"{name}: STATEK reads this variable without the prefix: {bare!r}"
    # Without the prefix, which would make all names similar.
    meant = closest(bare, [known.removeprefix(PREFIX) for known in VARIABLES if known.startswith(PREFIX)])
    hint = "" if meant is None else f" Did you mean {PREFIX + meant!r}?"
    return f"{name}: not a STATEK variable.{hint}"


def _whole(most: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and 0 <= value <= most


def _number(field: str, name: str | None = None) -> Variable:
    expected = "a whole number from 0 to 2**63 - 1"
    return Variable(name or PREFIX + field.upper(), field, int, _whole(MAX_LIMIT), expected)


def _text(field: str, name: str | None = None) -> Variable:
    accepts: Callable[[object], bool] = lambda value: isinstance(value, str)  # noqa: E731
    return Variable(name or PREFIX + field.upper(), field, str, accepts, "a string")


def _choice(field: str, name: str, *options: str) -> Variable:
    """Return a variable that accepts `options` in any letter case."""
    by_folded = {option.casefold(): option for option in options}

    def read(text: str) -> str:
        try:
            return by_folded[text.casefold()]
        except KeyError:
            raise ValueError(text) from None

    return Variable(name, field, read, options.__contains__, f"{', '.join(options[:-1])} or {options[-1]}")


def _is_extension(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_EXTENSION  # type: ignore[operator]


def _is_difficulty(value: object) -> bool:
    return isinstance(value, str) and value.strip().upper() in DIFFICULTY_LABELS


def _read_bool(text: str) -> bool:
    if text.casefold() not in ("true", "false"):
        raise ValueError(text)
    return text.casefold() == "true"


_CHAT_STYLES: Final = ("CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT")

_ALL: Final = (
    _number("max_turns"),
    _number("max_exceptions"),
    _number("max_consecutive_exceptions"),
    _number("max_token_usage"),
    Variable(
        "STATEK_LIMIT_EXTENSION_PER_COMPLETION",
        "limit_extension_per_completion",
        float,
        _is_extension,
        "a number from 0 to 1000000",
    ),
    _text("prompt_files_dir"),
    _text("logs_path"),
    _text("examples_dir"),
    _text("documents_dir"),
    _text("statek_model_info_dir", "STATEK_MODEL_INFO_DIR"),
    _text("warmup_defs_dir"),
    _choice("chat_style", "STATEK_CHAT_STYLE", *_CHAT_STYLES),
    _choice("examples_style", "STATEK_EXAMPLES_STYLE", *_CHAT_STYLES),
    _text("xml_box_console"),
    _text("xml_box_example"),
    _choice("log_level", "STATEK_LOG_LEVEL", "INFO", "WARNING", "ERROR", "CRITICAL"),
    _choice("default_acl_str", "STATEK_DEFAULT_ACL", "GRANT", "DENY"),
    Variable(
        "STATEK_DEFAULT_DIFFICULTY",
        "statek_default_difficulty",
        str,
        _is_difficulty,
        "L, M, H, low, medium or high",
    ),
    _text("statek_rpc_host", "STATEK_RPC_HOST"),
    Variable("STATEK_RPC_PORT", "statek_rpc_port", int, _whole(65535), "a port number from 0 to 65535"),
    _choice("python_sandbox_mode", "STATEK_PYTHON_SANDBOX_MODE", "restricted", "off"),
    _number("python_sandbox_max_source_bytes"),
    _number("python_sandbox_max_ast_nodes"),
    _text("python_sandbox_allowed_imports"),
    _text("python_sandbox_allowed_tools"),
    _text("statek_provider_config", "STATEK_PROVIDER_CONFIG"),
    # STATEK reads the remaining variables without the prefix.
    _text("default_llm_api_provider", "DEFAULT_LLM_API_PROVIDER"),
    Variable(
        "FULL_AGENT_TRACE",
        "full_agent_trace",
        _read_bool,
        lambda value: isinstance(value, bool),
        "true or false",
    ),
    _text("full_agent_trace_path", "FULL_AGENT_TRACE_PATH"),
    _number("full_agent_trace_max_bytes", "FULL_AGENT_TRACE_MAX_BYTES"),
    _number("full_agent_trace_backup_count", "FULL_AGENT_TRACE_BACKUP_COUNT"),
)

VARIABLES: Final[Mapping[str, Variable]] = {variable.name: variable for variable in _ALL}
"""All variables, keyed by name; most names start with `STATEK_`."""


SETTINGS: Final[Mapping[str, Variable]] = {variable.field: variable for variable in _ALL}
"""All variables, keyed by the setting's name in `StatekSettings`."""


class StatekSettings:
    """Every STATEK setting that can affect a job's behaviour, with STATEK's names and defaults.

    Provider keys and prompt files are omitted, because the reference runtime does not use them. Raises
    `BadSetting` for invalid values and unknown names, with one line per problem. Settings are immutable.
    """

    max_turns: int = 5
    max_exceptions: int = 3
    max_consecutive_exceptions: int = 1
    max_token_usage: int = 10_000
    limit_extension_per_completion: float = 0.0

    prompt_files_dir: str | None = None
    logs_path: str | None = None
    examples_dir: str | None = None
    documents_dir: str | None = None
    statek_model_info_dir: str | None = None
    warmup_defs_dir: str | None = None

    chat_style: str | None = None
    examples_style: str | None = None
    xml_box_console: str | None = None
    xml_box_example: str | None = None

    log_level: str = "ERROR"
    full_agent_trace: bool = False
    full_agent_trace_path: str = "full_agent_trace.jsonl"
    full_agent_trace_max_bytes: int = 10 * 1024 * 1024
    full_agent_trace_backup_count: int = 3

    default_acl_str: str = "DENY"
    default_llm_api_provider: str = "OPENROUTER"
    statek_default_difficulty: str = "M"
    statek_provider_config: str | None = None
    """Path to a JSON file with provider-specific request settings; the file is not opened."""
    statek_rpc_host: str | None = None
    statek_rpc_port: int | None = None

    python_sandbox_mode: str = "restricted"
    python_sandbox_max_source_bytes: int = 200_000
    python_sandbox_max_ast_nodes: int = 20_000
    python_sandbox_allowed_imports: str = (
        "datetime,calendar,time,re,math,decimal,fractions,statistics,collections,"
        "itertools,functools,operator,json"
    )
    """Comma-separated import roots."""
    python_sandbox_allowed_tools: str = ""
    """Comma-separated names of hidden tools that model-written code may still call."""

    def __init__(self, **given: object) -> None:
        """Set the `given` settings; all others keep STATEK's defaults."""
        problems = [problem for name, value in given.items() if (problem := _problem(name, value))]
        if problems:
            raise BadSetting("\n".join(problems))
        vars(self).update(given)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that were passed explicitly, including values equal to their defaults."""
        return dict(vars(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(
            f"{name}={value!r}: settings are immutable; create new ones with StatekSettings(...)"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StatekSettings) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"StatekSettings({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in SETTINGS)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Return the settings in `environ`, ignoring variables unrelated to STATEK.

        Raises `BadSetting` with one line per problem: the variable, its value and the expected values. For an
        unknown `STATEK_` variable, the line suggests the most similar name.
        """
        problems: list[str] = []
        values: dict[str, object] = {}
        for name in sorted(environ):
            variable = VARIABLES.get(name)
            if variable is not None:
                try:
                    value = variable.read(environ[name])
                except ValueError:
                    value = None
                if variable.accepts(value):
                    values[variable.field] = value
                else:
                    problems.append(f"{name}={environ[name]!r}: expected {variable.expected}")
            elif name.upper().startswith(PREFIX):
                problems.append(unknown_variable(name))
        if problems:
            raise BadSetting("\n".join(problems))
        return cls(**values)

    def harness_limits(self) -> HarnessLimits:
        """Return the four limits and the extension per completion from these settings."""
        return HarnessLimits(
            max_turns=self.max_turns,
            max_exceptions=self.max_exceptions,
            max_consecutive_exceptions=self.max_consecutive_exceptions,
            max_token_usage=self.max_token_usage,
            limit_extension_per_completion=self.limit_extension_per_completion,
        )


def _problem(name: str, value: object) -> str | None:
    """Return a description of what is wrong with a setting, or None if it is valid."""
    variable = SETTINGS.get(name)
    if variable is None:
        return f"StatekSettings has no setting {name!r}.{suggestion(name, SETTINGS)}"
    if variable.accepts(value) or (value is None and getattr(StatekSettings, name) is None):
        return None
    return f"{name}={value!r}: expected {variable.expected}"
