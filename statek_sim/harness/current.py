"""The current process's settings and harness, read from its environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from statek_sim.harness.harness import RULE_IN_USE, LLM_Harness
from statek_sim.harness.settings import StatekSettings


@cache
def get_statek_settings() -> StatekSettings:
    """Return the settings from the process environment.

    The result is cached until `get_statek_settings.cache_clear()`. Raises `BadSetting` for invalid variables.
    """
    return StatekSettings.from_env(os.environ)


class CurrentHarness:
    """The type of `get_llm_harness`: creates a harness from the process's settings on first use and caches it."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._cached: LLM_Harness | None = None
        self._simulated: ContextVar[LLM_Harness | None] = ContextVar("statek_sim_harness", default=None)

    @contextmanager
    def simulated(self, harness: LLM_Harness) -> Iterator[None]:
        """Make every call inside the `with` statement return `harness`."""
        token, rule = self._simulated.set(harness), RULE_IN_USE.set(harness.rule)
        try:
            yield
        finally:
            RULE_IN_USE.reset(rule)
            self._simulated.reset(token)

    def __call__(self) -> LLM_Harness:
        """Return the process's harness; raises `BadSetting` for invalid environment variables.

        Inside a `simulated` block, return that block's harness.
        """
        if (simulated := self._simulated.get()) is not None:
            return simulated
        if self._cached is None:
            self._cached = LLM_Harness.from_limits(get_statek_settings().harness_limits())
        return self._cached

    def cache_clear(self) -> None:
        """Clear the cached harness. The settings are cached separately, as in STATEK."""
        self._cached = None


get_llm_harness = CurrentHarness()
