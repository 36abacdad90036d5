"""STATEK's settings, read from `STATEK_*` environment variables (000, Configure the Harness; behaviour 11).

Nothing here reads the process environment: `current.py` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadSetting
from statek_sim.harness.limits import MAX_EXTENSION, MAX_LIMIT, HarnessLimits
from statek_sim.harness.variables import PREFIX, VARIABLES, parse_difficulty, unknown_variable

Count = Annotated[int, Field(strict=True, ge=0, le=MAX_LIMIT)]
ChatStyleName = Literal["CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT"]


class StatekSettings(BaseModel):
    """Every setting of STATEK that a job's behaviour can depend on, with STATEK's names and defaults.

    Provider keys and prompt files are left out: nothing here calls a provider. A wrong value or an unknown
    name raises `BadSetting`, one line per problem.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    max_turns: Count = 5
    max_exceptions: Count = 3
    max_consecutive_exceptions: Count = 1
    max_token_usage: Count = 10_000
    limit_extension_per_completion: Annotated[float, Field(ge=0, le=MAX_EXTENSION)] = 0.0

    prompt_files_dir: str | None = None
    logs_path: str | None = None
    examples_dir: str | None = None
    documents_dir: str | None = None
    statek_model_info_dir: str | None = None
    warmup_defs_dir: str | None = None

    chat_style: ChatStyleName | None = None
    examples_style: ChatStyleName | None = None
    xml_box_console: str | None = None
    xml_box_example: str | None = None

    log_level: Literal["INFO", "WARNING", "ERROR", "CRITICAL"] = "ERROR"
    full_agent_trace: bool = False
    full_agent_trace_path: str = "full_agent_trace.jsonl"
    full_agent_trace_max_bytes: Count = 10 * 1024 * 1024
    full_agent_trace_backup_count: Count = 3

    default_acl_str: Literal["GRANT", "DENY"] = "DENY"
    default_llm_api_provider: str = "OPENROUTER"
    statek_default_difficulty: str = "M"
    statek_provider_config: str | None = None
    """Path of a JSON file with provider-specific request settings; not opened here."""
    statek_rpc_host: str | None = None
    statek_rpc_port: Annotated[int, Field(ge=0, le=65535)] | None = None

    python_sandbox_mode: Literal["restricted", "off"] = "restricted"
    python_sandbox_max_source_bytes: Count = 200_000
    python_sandbox_max_ast_nodes: Count = 20_000
    python_sandbox_allowed_imports: str = (
        "datetime,calendar,time,re,math,decimal,fractions,statistics,collections,"
        "itertools,functools,operator,json"
    )
    """Comma-separated import roots."""
    python_sandbox_allowed_tools: str = ""
    """Comma-separated names of hidden tools that model-written code may still call."""

    def __init__(self, **values: object) -> None:
        """Take any settings by name; the rest have STATEK's defaults."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems = [_field_problem(str(found["loc"][0]), values) for found in error.errors()]
            raise BadSetting("\n".join(dict.fromkeys(problems))) from None

    @field_validator("statek_default_difficulty")
    @classmethod
    def _require_difficulty(cls, label: str) -> str:
        parse_difficulty(label)
        return label

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Return the settings that `environ` describes; other variables than STATEK's are ignored.

        Raises `BadSetting` with one line per problem: the variable, its value and what was expected, or for
        a `STATEK_` name that STATEK does not read, the name it was probably meant to be.
        """
        problems: list[str] = []
        values: dict[str, object] = {}
        for name in sorted(environ):
            variable = VARIABLES.get(name)
            if variable is not None:
                try:
                    values[variable.field] = variable.read(environ[name])
                    cls(**{variable.field: values[variable.field]})
                except (ValueError, BadSetting):
                    problems.append(f"{name}={environ[name]!r}: expected {variable.expected}")
            elif name.upper().startswith(PREFIX):
                problems.append(unknown_variable(name))
        if problems:
            raise BadSetting("\n".join(problems))
        return cls(**values)

    def harness_limits(self) -> HarnessLimits:
        """Return the limits that these settings configure."""
        return HarnessLimits(
            max_turns=self.max_turns,
            max_exceptions=self.max_exceptions,
            max_consecutive_exceptions=self.max_consecutive_exceptions,
            max_token_usage=self.max_token_usage,
            limit_extension_per_completion=self.limit_extension_per_completion,
        )


_EXPECTED = {variable.field: variable.expected for variable in VARIABLES.values()}


def _field_problem(field: str, values: Mapping[str, object]) -> str:
    if field not in _EXPECTED:
        return f"StatekSettings has no setting {field!r}.{suggestion(field, _EXPECTED)}"
    return f"{field}={values[field]!r}: expected {_EXPECTED[field]}"
