"""STATEK's settings and harness for applications; they accept and reject the same values as STATEK's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from pydantic import ConfigDict, create_model

from statek_sim.harness import harness, settings
from statek_sim.harness.limits import HarnessLimits
from statek_sim.harness.settings import PREFIX, SETTINGS, VARIABLES
from statek_sim.runtime.execution.job_registry import default_style
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.state.chat_style import ChatStyle


def _style(text: str) -> ChatStyle:
    try:
        return ChatStyle[text.upper()]
    except KeyError:
        raise RuntimeError(f"Enum value not found: {text.upper()}\n") from None


_OVERRIDING: Final = {"chat_style", "examples_style", "log_level"}
"""Settings for which an environment variable takes precedence over an argument."""
_READ: Final[Mapping[str, Callable[[str], object]]] = {
    **{name: variable.read for name, variable in SETTINGS.items()},
    "chat_style": _style,
    "examples_style": _style,
    "log_level": str.upper,
    "default_acl_str": str.upper,
    "python_sandbox_mode": str.lower,
    "full_agent_trace": lambda text: text.casefold() == "true",
}
_HINTS: Final = {**get_type_hints(settings.StatekSettings), "chat_style": Any, "examples_style": Any}
_FIELDS: Final[dict[str, Any]] = {
    name: (_HINTS[name], getattr(settings.StatekSettings, name)) for name in SETTINGS
}
_Fields: Any = create_model("StatekSettings", __config__=ConfigDict(extra="ignore"), **_FIELDS)


class StatekSettings(_Fields):  # type: ignore[misc]  # a model made of the settings' table
    """Settings from arguments and the environment; raises pydantic's ValidationError, ValueError or RuntimeError."""

    def __init__(self, **data: Any) -> None:
        unprefixed = {name.lower(): text for name, text in os.environ.items() if name.lower() in SETTINGS}
        super().__init__(**{**unprefixed, **data})
        for name, variable in VARIABLES.items():
            if name in os.environ and (variable.field in _OVERRIDING or variable.field not in data):
                setattr(self, variable.field, _READ[variable.field](os.environ[name]))


def get_statek_settings() -> StatekSettings:
    """Return the settings of the test's runtime."""
    runtime: Any = current_runtime()
    if not isinstance(runtime.settings, StatekSettings):
        values = {name: getattr(runtime.settings, name) for name in SETTINGS}
        values["chat_style"] = default_style(runtime.settings)
        runtime.settings = StatekSettings.model_construct(**values)
    given: StatekSettings = runtime.settings
    return given


def use_settings(wanted: Any) -> None:
    """Use these settings for the test's runtime, except for the limits."""
    runtime = current_runtime()
    runtime.use(wanted)
    for job in runtime.jobs:
        job.chat_style = job.job_def.chat_style


@contextmanager
def hidden_environment() -> Iterator[None]:
    """Hide the variables that the settings read inside the `with` statement."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(PREFIX) or name in VARIABLES or name.lower() in SETTINGS:
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@dataclass(frozen=True, slots=True)
class _AnyLimits(HarnessLimits):
    def __post_init__(self) -> None:
        """Accept every value."""


class LLM_Harness(harness.LLM_Harness):  # noqa: N801  # STATEK's own name
    """A harness that accepts limits of any value and type."""

    limits_type = _AnyLimits
