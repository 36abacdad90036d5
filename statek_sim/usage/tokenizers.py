"""The tokenizer for each model, and the pieces in which a stream sends a string.

Tokenizers are chosen as in `tiktoken.encoding_for_model`: by exact name first, then by the first matching prefix. For a
model that tiktoken does not know, or whose vocabulary is not included here, tokens are counted with o200k_base and
labelled as a proxy, so that no output presents an estimate as the model's exact count.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

from statek_sim.errors import BadInput
from statek_sim.usage.vocabularies import VOCABULARIES, count_tokens, token_texts

PROXY_ENCODING: Final = "o200k_base"
"""The tokenizer for models whose tokenizer is unknown."""

SHORT_TEXT: Final = 4_096
"""The maximum length of a string in the cache for short strings."""

LONGEST_CACHED_TEXT: Final = 1_048_576
"""The maximum length of a string whose count is cached."""


class Tokenizer(Protocol):
    """Counts tokens; equal strings must have equal counts, because counts are cached."""

    def count(self, text: str) -> int:
        """Return the number of tokens in any string."""


class CachedTokenizer:
    """A tokenizer that caches counts for recent strings, because jobs send the same text repeatedly."""

    __slots__ = ("_count_long", "_count_short", "_count_uncached")

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count_uncached = count
        self._count_short = functools.lru_cache(maxsize=16_384)(count)
        self._count_long = functools.lru_cache(maxsize=128)(count)

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        size = len(text)
        if size <= SHORT_TEXT:
            return self._count_short(text)
        return self._count_long(text) if size <= LONGEST_CACHED_TEXT else self._count_uncached(text)


@dataclass(frozen=True, slots=True)
class ModelTokenizer:
    """The tokenizer that counts a model's tokens; `proxy` marks another model's tokenizer."""

    name: str
    proxy: bool
    tokenizer: Tokenizer

    @property
    def label(self) -> str:
        """The tokenizer's name in reports, such as `o200k_base (proxy)`."""
        return f"{self.name} (proxy)" if self.proxy else self.name


class TokenizerRegistry:
    """A user's own tokenizers by model, which take precedence over tiktoken's tables."""

    def __init__(self) -> None:
        self._by_name: dict[str, ModelTokenizer] = {}

    def register_tokenizer(self, model_or_prefix: str, name: str, tokenizer: Tokenizer) -> None:
        """Use `tokenizer`, labelled `name`, for `model_or_prefix` and every model that starts with it.

        Counts are cached by text. Raises `BadInput` if the name is empty or already used.
        """
        if not model_or_prefix or not name:
            raise BadInput(f"tokenizer {name!r} for model {model_or_prefix!r}: both names must be non-empty")
        if model_or_prefix in self._by_name:
            taken = self._by_name[model_or_prefix].name
            raise BadInput(
                f"tokenizer {name!r}: tokens for {model_or_prefix!r} are already counted with {taken!r}"
            )
        self._by_name[model_or_prefix] = ModelTokenizer(
            name, proxy=False, tokenizer=CachedTokenizer(tokenizer.count)
        )

    def find(self, model: str) -> ModelTokenizer | None:
        """Return the tokenizer for the longest registered prefix of `model`, or None."""
        prefixes = [prefix for prefix in self._by_name if model.startswith(prefix)]
        return self._by_name[max(prefixes, key=len)] if prefixes else None


def tokenizer_for_model(model: str, registry: TokenizerRegistry | None = None) -> ModelTokenizer:
    """Return the tokenizer for a STATEK model string: `model`, `family/model` or `provider/family/model`.

    Vocabularies are loaded on first use. `registry` is searched for the whole string, then for the bare model name.
    """
    name = bare_model_name(model)
    if registry is not None:
        own = registry.find(model) or registry.find(name)
        if own is not None:
            return own
    encoding = encoding_name(name)
    if encoding is not None and encoding in VOCABULARIES:
        return ModelTokenizer(encoding, proxy=False, tokenizer=_vendored(encoding))
    return ModelTokenizer(PROXY_ENCODING, proxy=True, tokenizer=_vendored(PROXY_ENCODING))


@functools.lru_cache
def bare_model_name(model: str) -> str:
    """Return `model` without provider, family and trailing options such as `/rl=60` (behaviour 11)."""
    parts = [part for part in model.split("/") if part and "=" not in part]
    return parts[-1] if parts else model


def encoding_name(model: str) -> str | None:
    """Return tiktoken's encoding name for a bare model name, or None for an unknown model."""
    # Imported here, because it is not needed with a user's tokenizer.
    from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING  # noqa: PLC0415

    exact = MODEL_TO_ENCODING.get(model)
    if exact is not None:
        return exact
    for prefix, encoding in MODEL_PREFIX_TO_ENCODING.items():
        if model.startswith(prefix):
            return encoding
    return None


@functools.cache
def _vendored(encoding: str) -> CachedTokenizer:
    """Return the tokenizer for an included vocabulary; all jobs in the process share its cache."""
    return CachedTokenizer(functools.partial(count_tokens, encoding))


LONGEST_REMEMBERED: Final = 4096
"""The maximum length of a string whose pieces are cached."""


def token_pieces(text: str, model: str) -> tuple[str, ...]:
    """Split `text` into its tokens, as strings that form the original text when joined.

    A character that spans several tokens is in the last token's piece. The model's own vocabulary is used if it is
    included, or else the proxy's. A string with lone surrogates is one piece.
    """
    return _remembered(text, model) if len(text) <= LONGEST_REMEMBERED else _cut(text, model)


def _cut(text: str, model: str) -> tuple[str, ...]:
    name = tokenizer_for_model(model).name
    pieces = tuple(token_texts(name if name in VOCABULARIES else PROXY_ENCODING, text))
    return pieces if "".join(pieces) == text else (text,)


_remembered = functools.lru_cache(maxsize=1024)(_cut)


TEKKEN: Final = "tekken"
"""The SOURCE value for Mistral's Tekken vocabulary."""

_TEKKEN_FILE: Final = "tekken_240911.json"
"""The newer of mistral-common's two vocabularies."""


class HuggingFaceTokenizer:
    """Counts tokens with a Hugging Face `tokenizer.json`, without added special tokens."""

    def __init__(self, path: Path) -> None:
        library = _optional("tokenizers", extra="tokenizers")
        if not path.is_file():
            raise BadInput(f"{path}: no such file; expected a Hugging Face tokenizer.json")
        try:
            self._tokenizer: Any = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain exceptions for any bad file
            raise BadInput(f"{path}: not a Hugging Face tokenizer.json: {error}") from error
        # A file may truncate or pad texts, which would change the count.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Otherwise "</s>" in a text would count as one special token.
        self._tokenizer.encode_special_tokens = True

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        return len(self._tokenizer.encode(_sayable(text), add_special_tokens=False).ids)


class TekkenTokenizer:
    """Counts tokens with mistral-common's Tekken vocabulary, without begin and end tokens."""

    def __init__(self) -> None:
        module = _optional("mistral_common.tokens.tokenizers.tekken", extra="mistral")
        file = resources.files("mistral_common") / "data" / _TEKKEN_FILE
        with resources.as_file(file) as path:
            self._tokenizer: Any = module.Tekkenizer.from_file(path)

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        return len(self._tokenizer.encode(_sayable(text), bos=False, eos=False))


def registry_of(assignments: Iterable[str]) -> TokenizerRegistry | None:
    """Return the tokenizers from `MODEL=SOURCE` assignments, or None if there are none; SOURCE is a file or `tekken`.

    Raises `BadInput` for an invalid assignment, an invalid file, or an extra that is not installed.
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
    """Return `text` with replacement characters for lone surrogates, which neither library accepts."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _optional(module: str, *, extra: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BadInput(f"{module} is not installed; pip install 'pytest-statek[{extra}]'") from error
