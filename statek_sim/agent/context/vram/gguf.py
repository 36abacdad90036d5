"""Reading the metadata at the beginning of a GGUF file (versions 2 and 3), without its weights.

The format is ggml-org/ggml's `docs/gguf.md`: a magic, a version, two counts, then keys with typed values.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from statek_sim.errors import BadInput
from statek_sim.unreadable import opened
from statek_sim.values import JSON

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING, _ARRAY = 8, 9
_NUMBERS: Final[Mapping[int, str]] = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
"""Types of one number, as `struct` writes them."""

KEPT: Final = 4096
"""Elements of an array that are kept; the vocabulary, with a hundred thousand and more, is passed over."""
_MOST_KEYS: Final = 65_536
_LONGEST_KEY: Final = 65_535


def read_metadata(path: Path) -> dict[str, JSON]:
    """Return the metadata of a GGUF file by key; of arrays with more than `KEPT` elements only their length.

    `BadInput`, with the file and the byte, for what is no GGUF file, is cut off, or says lengths that it has not.
    """
    try:
        with opened(path) as file:
            return _Reader(file, str(path), os.fstat(file.fileno()).st_size).metadata()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


class _Reader:
    """Takes a file apart from its beginning on."""

    def __init__(self, file: BinaryIO, name: str, size: int) -> None:
        self._file, self._name, self._size = file, name, size

    def metadata(self) -> dict[str, JSON]:
        """Return all keys and values."""
        if self._take(4) != _MAGIC:
            raise self._wrong("it does not begin with GGUF")
        version = self._number("<I")
        if version not in _VERSIONS:
            raise self._wrong(f"it is of version {version}, expected 2 or 3, little-endian")
        self._number("<Q")
        count = self._number("<Q")
        if count > _MOST_KEYS:
            raise self._wrong(f"it says that it has {count} keys")
        return {self._string(_LONGEST_KEY): self._value(self._number("<I")) for _ in range(int(count))}

    def _value(self, kind: float, *, depth: int = 0) -> JSON:
        if kind == _STRING:
            return self._string(self._size)
        if kind == _ARRAY:
            return self._array(depth)
        if kind not in _NUMBERS:
            raise self._wrong(f"there is no type {kind}")
        return self._number(_NUMBERS[int(kind)])

    def _array(self, depth: int) -> JSON:
        if depth:
            raise self._wrong("it has an array in an array")
        kind, length = int(self._number("<I")), int(self._number("<Q"))
        if length > self._size:
            raise self._wrong(f"it says that an array has {length} elements, more than it has bytes")
        if length <= KEPT:
            return [self._value(kind, depth=depth + 1) for _ in range(length)]
        if kind in _NUMBERS:
            self._skip(length * struct.calcsize(_NUMBERS[kind]))
        else:
            for _ in range(length):
                if kind != _STRING:
                    raise self._wrong(f"it has a long array of type {kind}")
                self._skip(int(self._number("<Q")))
        return length

    def _string(self, longest: int) -> str:
        length = int(self._number("<Q"))
        if length > longest:
            raise self._wrong(f"it says that a text has {length} bytes")
        return self._take(length).decode("utf-8", "replace")

    def _number(self, form: str) -> int | float:
        value: int | float = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return value

    def _skip(self, length: int) -> None:
        if self._file.tell() + length > self._size:
            raise self._wrong("it is cut off")
        self._file.seek(length, os.SEEK_CUR)

    def _take(self, length: int) -> bytes:
        taken = self._file.read(length) if length <= self._size else b""
        if len(taken) < length:
            raise self._wrong("it is cut off")
        return taken

    def _wrong(self, what: str) -> BadInput:
        return BadInput(f"{self._name}: no GGUF file that can be read: {what} (byte {self._file.tell()})")
