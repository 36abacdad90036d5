"""Tests of `statek_sim.harness.current`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from statek_sim.errors import BadSetting
from statek_sim.harness.current import get_llm_harness, get_statek_settings
from statek_sim.harness.limits import HarnessLimits


@pytest.fixture(autouse=True)
def fresh_caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start with no STATEK variable and nothing kept; leave nothing kept."""
    for name in [name for name in os.environ if name.upper().startswith("STATEK_")]:
        monkeypatch.delenv(name)
    get_statek_settings.cache_clear()
    get_llm_harness.cache_clear()
    yield
    get_statek_settings.cache_clear()
    get_llm_harness.cache_clear()


def test_settings_are_read_once_until_the_cache_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    before = get_statek_settings()
    monkeypatch.setenv("STATEK_MAX_TURNS", "9")
    assert get_statek_settings() is before
    get_statek_settings.cache_clear()
    assert (before.max_turns, get_statek_settings().max_turns) == (5, 9)


def test_the_harness_has_the_limits_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_llm_harness().limits == HarnessLimits()
    assert get_llm_harness() is get_llm_harness()
    monkeypatch.setenv("STATEK_MAX_TOKEN_USAGE", "1")
    get_llm_harness.cache_clear()
    assert get_llm_harness().limits == HarnessLimits()
    get_statek_settings.cache_clear()
    get_llm_harness.cache_clear()
    assert get_llm_harness().limits == HarnessLimits(max_token_usage=1)


def test_a_wrong_environment_is_reported_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATEK_MAX_TURN", "9")
    with pytest.raises(
        BadSetting, match=r"^STATEK_MAX_TURN: not a STATEK variable\. Did you mean 'STATEK_MAX_TURNS'"
    ):
        get_llm_harness()
    monkeypatch.delenv("STATEK_MAX_TURN")
    assert get_llm_harness().limits == HarnessLimits()
