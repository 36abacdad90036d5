"""STATEK's settings and harness for applications; they accept and reject the same values as STATEK's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Final, get_type_hints

from pydantic import ConfigDict, Field, PrivateAttr, create_model

from statek_sim.errors import BadInput
from statek_sim.harness import harness, settings
from statek_sim.harness.limits import HarnessLimits
from statek_sim.harness.settings import PREFIX, SETTINGS, VARIABLES
from statek_sim.runtime.execution.job_registry import default_style
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.prompts import PromptDef, load_prompt_files


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
_NOT_COVERED: Final = (
    "documents_dir",
    "examples_dir",
    "full_agent_trace",
    "llm_api_settings",
    "logs_path",
    "statek_provider_config",
)
"""Settings that must be empty when a test uses them."""
_LIMITS: Final = tuple(field.name for field in fields(HarnessLimits))


class StatekSettings(_Fields):  # type: ignore[misc]  # a model made of the settings' table
    """Settings from arguments and the environment; raises pydantic's ValidationError, ValueError or RuntimeError.

    Assigning a setting in use takes effect at once, except for a sandbox setting after `init`.
    """

    llm_api_settings: dict[str, Any] = Field(default_factory=dict)
    prompt_defs: dict[str, Any] = Field(default_factory=dict)
    _passed_to_init: bool = PrivateAttr(default=False)

    def __init__(self, **data: Any) -> None:
        for name in data:
            if name == "sources" or name.startswith("_"):
                raise NotCovered(f"StatekSettings({name}=...)")
        own = type(self).model_fields
        unprefixed = {name.lower(): text for name, text in os.environ.items() if name.lower() in own}
        super().__init__(**{**unprefixed, **data})
        for name, variable in VARIABLES.items():
            if name in os.environ and (variable.field in _OVERRIDING or variable.field not in data):
                setattr(self, variable.field, _READ[variable.field](os.environ[name]))
        self.load_prompts()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in type(self).model_fields or not _in_use(self):
            super().__setattr__(name, value)
            return
        if name in _LIMITS:
            raise BadInput(
                f"{name}={value!r}: the test's limits apply; set them with "
                f"@pytest.mark.statek(limits={{{name!r}: ...}})"
            )
        _check_covered(name, value)
        super().__setattr__(name, value)
        if not (self._passed_to_init and name.startswith("python_sandbox_")):
            _apply(self)

    def load_prompts(self) -> None:
        """Load the prompt files, unless there are prompts already."""
        if not self.prompt_defs and self.prompt_files_dir:
            self.prompt_defs = load_prompt_files(self.prompt_files_dir)

    def get_prompt_def(self, name: str) -> PromptDef | None:
        """Return a role's prompt, or None."""
        found: PromptDef | None = self.prompt_defs.get(name)
        return found


def _in_use(settings: StatekSettings) -> bool:
    try:
        given: object = current_runtime().settings
    except BadInput:
        return False
    return given is settings


def _check_covered(name: str, value: object) -> None:
    if name in _NOT_COVERED and value:
        raise NotCovered(f"StatekSettings.{name}={value!r} (leave it unset in tests)")


def get_statek_settings() -> StatekSettings:
    """Return the settings of the test's runtime."""
    runtime: Any = current_runtime()
    if not isinstance(runtime.settings, StatekSettings):
        values = {name: getattr(runtime.settings, name) for name in SETTINGS}
        values["chat_style"] = default_style(runtime.settings)
        runtime.settings = StatekSettings.model_construct(**values, prompt_defs={}, llm_api_settings={})
    given: StatekSettings = runtime.settings
    return given


def use_settings(wanted: Any) -> None:
    """Use these settings for the test's runtime, except for the limits; raises `NotCovered` for some settings."""
    for name in _NOT_COVERED:
        _check_covered(name, getattr(wanted, name, None))
    _apply(wanted)
    wanted._passed_to_init = True


def _apply(wanted: Any) -> None:
    runtime = current_runtime()
    runtime.use(wanted)
    for job in runtime.jobs:
        job.use_defaults()


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
