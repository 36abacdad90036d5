"""Tokenizers registered by conftests and plugins."""

from __future__ import annotations

from typing import Final

import pytest

from statek_sim.usage.tokenizers import TokenizerRegistry

_TOKENIZERS: Final = pytest.StashKey[TokenizerRegistry]()


def tokenizers(config: pytest.Config) -> TokenizerRegistry:
    """Return the tokenizers registered by conftests and plugins, collected once per run."""
    if _TOKENIZERS not in config.stash:
        registry = config.stash[_TOKENIZERS] = TokenizerRegistry()
        config.hook.pytest_statek_tokenizers(registry=registry)
    return config.stash[_TOKENIZERS]
