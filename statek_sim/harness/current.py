"""The settings and the harness of this process: the only file here that reads its environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import ExtensionRule
from statek_sim.harness.settings import StatekSettings


class CurrentSettings:
    """`get_statek_settings()`: settings from the environment, read once and cached until `cache_clear()`."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._kept: StatekSettings | None = None

    def __call__(self, environ: Mapping[str, str] | None = None) -> StatekSettings:
        """Return this process's settings, or with `environ` new ones; invalid variables are `BadSetting`."""
        if environ is not None:
            return StatekSettings.from_env(environ)
        if self._kept is None:
            self._kept = StatekSettings.from_env(os.environ)
        return self._kept

    def cache_clear(self) -> None:
        """Read the environment again at the next call."""
        self._kept = None


class CurrentHarness:
    """`get_llm_harness()`: one harness per extension rule, created once and cached until `cache_clear()`."""

    def __init__(self, settings: CurrentSettings) -> None:
        """Start with no harness; `settings` provides the limits of the first one."""
        self._settings = settings
        self._kept: dict[ExtensionRule, LLM_Harness] = {}
        self._simulated: ContextVar[LLM_Harness | None] = ContextVar("statek_sim_harness", default=None)

    @contextmanager
    def simulated(self, harness: LLM_Harness) -> Iterator[None]:
        """Make `harness` the process's harness inside the block."""
        token = self._simulated.set(harness)
        try:
            yield
        finally:
            self._simulated.reset(token)

    def __call__(
        self, environ: Mapping[str, str] | None = None, *, rule: ExtensionRule = ExtensionRule.ADDITIVE
    ) -> LLM_Harness:
        """Return this process's harness, or with `environ` a new one; raises `BadSetting` for invalid variables.

        Inside a simulated process, it is that process's harness, regardless of the real environment.
        """
        if environ is not None:
            return self._made(self._settings(environ), rule)
        if (simulated := self._simulated.get()) is not None:
            return simulated
        if rule not in self._kept:
            self._kept[rule] = self._made(self._settings(), rule)
        return self._kept[rule]

    def cache_clear(self) -> None:
        """Create the harness again on the next call; the settings have their own cache, as in STATEK."""
        self._kept.clear()

    @staticmethod
    def _made(settings: StatekSettings, rule: ExtensionRule) -> LLM_Harness:
        return LLM_Harness.from_limits(settings.harness_limits(), rule=rule)


get_statek_settings = CurrentSettings()
get_llm_harness = CurrentHarness(get_statek_settings)
