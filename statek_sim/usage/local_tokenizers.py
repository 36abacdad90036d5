"""Tokenizers that are installed or lie on this disk: Hugging Face's `tokenizer.json` and Mistral's Tekken.

Both are optional extras (`pip install pytest-statek[tokenizers]`, `[mistral]`) and nothing is downloaded. A text is
only text to them: a string that looks like a special token is counted by its characters' tokens, wherever the
library can be told so, and never fails.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.usage.tokenizers import TokenizerRegistry

TEKKEN: Final = "tekken"
"""The source that stands for Mistral's bundled Tekken vocabulary."""

_TEKKEN_FILE: Final = "tekken_240911.json"
"""The newer of the two vocabularies that mistral-common carries."""


class HuggingFaceTokenizer:
    """Counts with a Hugging Face `tokenizer.json`, without the special tokens that it would add around a text."""

    def __init__(self, path: Path) -> None:
        library = _optional("tokenizers", extra="tokenizers")
        if not path.is_file():
            raise BadInput(f"{path}: no such file, expected a Hugging Face tokenizer.json")
        try:
            self._tokenizer: Any = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain exceptions for any bad file
            raise BadInput(f"{path}: not a Hugging Face tokenizer.json: {error}") from error
        # A file may ask for shortened or padded texts, which would be another count.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Otherwise "</s>" in a text would count as one token, the end of the text.
        self._tokenizer.encode_special_tokens = True

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        return len(self._tokenizer.encode(_sayable(text), add_special_tokens=False).ids)


class TekkenTokenizer:
    """Counts with the Tekken vocabulary that mistral-common carries, without a beginning and an end."""

    def __init__(self) -> None:
        module = _optional("mistral_common.tokens.tokenizers.tekken", extra="mistral")
        file = resources.files("mistral_common") / "data" / _TEKKEN_FILE
        with resources.as_file(file) as path:
            self._tokenizer: Any = module.Tekkenizer.from_file(path)

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        return len(self._tokenizer.encode(_sayable(text), bos=False, eos=False))


def registry_of(assignments: Iterable[str]) -> TokenizerRegistry | None:
    """Return the tokenizers of `MODEL=SOURCE` assignments, None without any; SOURCE is a file or `tekken`.

    `BadInput` for an assignment of another form, a file that is none, and an extra that is not installed.
    """
    registry: TokenizerRegistry | None = None
    for assignment in assignments:
        model, _, source = assignment.partition("=")
        if not model or not source:
            raise BadInput(f"--tokenizer {assignment!r}: expected MODEL=tokenizer.json or MODEL={TEKKEN}")
        registry = registry or TokenizerRegistry()
        if source == TEKKEN:
            registry.register_tokenizer(model, TEKKEN, TekkenTokenizer())
        else:
            registry.register_tokenizer(model, Path(source).stem, HuggingFaceTokenizer(Path(source)))
    return registry


def _sayable(text: str) -> str:
    """Return `text` with replacement characters for lone surrogates, which neither library can take."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _optional(module: str, *, extra: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BadInput(f"{module} is not installed; pip install 'pytest-statek[{extra}]'") from error
