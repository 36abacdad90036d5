"""The settings and the harness of the current process, read from its environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import ExtensionRule
from statek_sim.harness.settings import StatekSettings


class CurrentSettings:
    """The callable `get_statek_settings`: it reads settings from the environment once, and caches them."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._kept: StatekSettings | None = None

    def __call__(self, environ: Mapping[str, str] | None = None) -> StatekSettings:
        """Return the settings of this process, or those in `environ`; raises `BadSetting` for invalid variables."""
        if environ is not None:
            return StatekSettings.from_env(environ)
        if self._kept is None:
            self._kept = StatekSettings.from_env(os.environ)
        return self._kept

    def cache_clear(self) -> None:
        """Forget the cached settings, so that the next call reads the environment again."""
        self._kept = None


class CurrentHarness:
    """The callable `get_llm_harness`: it creates one harness per extension rule, and caches it."""

    def __init__(self, settings: CurrentSettings) -> None:
        """Start with an empty cache; new harnesses get their limits from `settings`."""
        self._settings = settings
        self._kept: dict[ExtensionRule, LLM_Harness] = {}
        self._simulated: ContextVar[LLM_Harness | None] = ContextVar("statek_sim_harness", default=None)

    @contextmanager
    def simulated(self, harness: LLM_Harness) -> Iterator[None]:
        """Make every call without `environ` inside the block return `harness`."""
        token = self._simulated.set(harness)
        try:
            yield
        finally:
            self._simulated.reset(token)

    def __call__(
        self, environ: Mapping[str, str] | None = None, *, rule: ExtensionRule = ExtensionRule.ADDITIVE
    ) -> LLM_Harness:
        """Return the harness of this process, or a new one for `environ`; raises `BadSetting` for invalid variables.

        Inside a `simulated` block, calls without `environ` return the harness of the block.
        """
        if environ is not None:
            return self._made(self._settings(environ), rule)
        if (simulated := self._simulated.get()) is not None:
            return simulated
        if rule not in self._kept:
            self._kept[rule] = self._made(self._settings(), rule)
        return self._kept[rule]

    def cache_clear(self) -> None:
        """Forget the cached harnesses; the settings have their own cache, as in STATEK."""
        self._kept.clear()

    @staticmethod
    def _made(settings: StatekSettings, rule: ExtensionRule) -> LLM_Harness:
        return LLM_Harness.from_limits(settings.harness_limits(), rule=rule)


get_statek_settings = CurrentSettings()
get_llm_harness = CurrentHarness(get_statek_settings)
