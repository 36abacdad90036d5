"""What STATEK keeps per process or reads from outside, set for one test and put back after it (behaviour 0, 14)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any, Final

import dbzero
from statek import document, llm_api, llm_harness, locale, settings, system
from statek.executors import chat_log_item, example, utils

from statek_sim.backends.installed.runtime import configure
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.settings import StatekSettings
from statek_sim.providers.wire.format import FAKE_URLS, PROVIDERS, format_of

PREFIX: Final = "statek-test"
"""The name of the store's prefix that a test starts with; it may open others."""


_CACHED: Final = (
    settings.get_statek_settings,
    settings.get_provider_settings,
    llm_harness.get_llm_harness,
    llm_api.LLM_API.get,
    example.load_examples,
    document.load_documents,
)
"""Functions that remember their first answer."""


@contextmanager
def isolated(wanted: StatekSettings, limits: LLM_Harness) -> Iterator[None]:
    """Give STATEK an empty store, these settings and limits, and nothing of the environment; undo it all after."""
    with ExitStack() as stack:
        stack.enter_context(_scrubbed_environment())
        stack.enter_context(_registries_restored())
        stack.callback(_forget)
        _forget()
        stack.enter_context(_temporary_store())
        configure(wanted.given, asdict(limits.limits))
        yield


@contextmanager
def _temporary_store() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="statek-test-") as folder:
        dbzero.init(folder, read_write=True)
        try:
            # Commits in the background would be one more thing that varies.
            dbzero.open(PREFIX, "rw", autocommit=False)
            yield
        finally:
            dbzero.close()


@contextmanager
def _scrubbed_environment() -> Iterator[None]:
    """Hide every variable and `.env` that STATEK's settings would read; give each provider a scripted address."""
    before = dict(os.environ)
    env_file = settings.StatekSettings.model_config.get("env_file")
    fields = {name.upper() for name in settings.StatekSettings.model_fields}
    for name in before:
        if name.upper() in fields or name.startswith(("STATEK_", "FULL_AGENT_TRACE")) or _is_provider(name):
            del os.environ[name]
    for provider in PROVIDERS:
        os.environ[f"{provider}_API_URL"] = FAKE_URLS[format_of(provider).NAME]
        os.environ[f"{provider}_API_KEY"] = "scripted"
    settings.StatekSettings.model_config["env_file"] = None
    try:
        yield
    finally:
        settings.StatekSettings.model_config["env_file"] = env_file
        os.environ.clear()
        os.environ.update(before)


def _is_provider(name: str) -> bool:
    return name.endswith(("_API_URL", "_API_KEY", "_RESPONSE_FORMAT_FILE", "_USE_PROMPT_CACHING"))


@contextmanager
def virtual_timestamps(now: Callable[[], datetime]) -> Iterator[None]:
    """Have items of chat logs say `now()`: their classes hold on to the real clock from when they were imported."""
    makers: list[Any] = [
        vars(kind)["__init__"] for kind in vars(chat_log_item).values() if is_dataclass(kind)
    ]
    with ExitStack() as stack:
        for maker in makers:
            cells = dict(zip(maker.__code__.co_freevars, maker.__closure__ or (), strict=True))
            cell = cells.get("_dflt_timestamp")
            if cell is not None:
                stack.callback(setattr, cell, "cell_contents", cell.cell_contents)
                cell.cell_contents = now
        yield


@contextmanager
def _registries_restored() -> Iterator[None]:
    """Take back what a test registers; what the application's modules registered at import stays."""
    tools = list(system._TOOL_REGISTRY)
    providers = dict(llm_api._CUSTOM_LLM_API_PROVIDERS)
    try:
        yield
    finally:
        system._TOOL_REGISTRY[:] = tools
        _restore(llm_api._CUSTOM_LLM_API_PROVIDERS, providers)
        if hasattr(utils, "_HIDDEN_REGISTERED_TOOL_NAMES"):
            utils._HIDDEN_REGISTERED_TOOL_NAMES = None


def _restore(registry: dict[str, Any], before: Mapping[str, Any]) -> None:
    registry.clear()
    registry.update(before)


def _forget() -> None:
    """Let STATEK ask anew for what it remembers."""
    settings.set_statek_settings(None)
    for function in _CACHED:
        function.cache_clear()
    # Locales are stored, and the store of the test before is closed.
    locale._LOCALE_CACHE.clear()
