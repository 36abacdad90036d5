"""Presets: named sets of environment variables in `.env` files ("Harness Policies", Practical Presets)."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dotenv.parser import Binding, parse_stream

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadSetting
from statek_sim.harness.settings import PREFIX, VARIABLES, StatekSettings
from statek_sim.input_files import read_text

PRESETS_DIR: Final = Path(__file__).parent / "presets"
"""Folder that contains the built-in presets."""

BUILT_IN: Final = ("default", "local", "interactive", "batch")
"""Names of the built-in presets; their values are those in "Harness Policies"."""

MAX_BYTES: Final = 1_000_000
"""Maximum preset file size in bytes; real presets have only a few lines."""

MOST_BLANKS: Final = 1_000
"""Maximum consecutive blanks in a preset file; parsing them takes quadratic time."""
_BLANKS: Final = re.compile(rf"[^\S\n]{{{MOST_BLANKS + 1}}}")

_SHOWN: Final = 400
"""Maximum number of characters shown from a preset line in an error message."""


@dataclass(frozen=True, slots=True)
class Preset:
    """The valid environment variables that a preset file sets.

    `StatekSettings.from_env(preset.values)` returns the settings. `lines` maps each variable to its one-based
    line number.
    """

    name: str
    path: Path
    values: Mapping[str, str]
    lines: Mapping[str, int]


def load_preset(name_or_path: str | Path) -> Preset:
    """Return a built-in preset by name, or a preset file by path.

    Raises `BadSetting` if there is no such preset or file. For an invalid file, the message lists each
    problem on its own line as `path:line: problem`.
    """
    path = _locate(name_or_path)
    values: dict[str, str] = {}
    first_line: dict[str, int] = {}
    problems: list[str] = []
    for line, binding in _bindings(path):
        problem = _problem(binding, first_line)
        if problem is not None:
            problems.append(f"{path}:{line}: {problem}")
        elif binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
            first_line[binding.key] = line
    if problems:
        raise BadSetting("\n".join(problems))
    return Preset(path.stem, path, MappingProxyType(values), MappingProxyType(first_line))


def assignments(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield `(line, name, value)` for each assignment in a `.env` file; other lines are skipped.

    Raises `BadSetting` if the file cannot be read.
    """
    for line, binding in _bindings(path):
        if not binding.error and binding.key is not None and binding.value is not None:
            yield line, binding.key, binding.value


def _locate(name_or_path: str | Path) -> Path:
    if name_or_path in BUILT_IN:
        return PRESETS_DIR / f"{name_or_path}.env"
    given = str(name_or_path)
    # os.path returns False where pathlib raises: for names that are too long and unreadable folders.
    if os.path.isfile(given):
        return Path(given)
    if os.path.exists(given):
        raise BadSetting(f"preset {given!r}: not a regular file; expected a file with KEY=VALUE lines")
    known = ", ".join(BUILT_IN)
    hint = suggestion(given, BUILT_IN)
    raise BadSetting(f"preset {given!r}: no such file or built-in preset; built-in presets: {known}.{hint}")


def _bindings(path: Path) -> Iterator[tuple[int, Binding]]:
    """Yield `(line, entry)` for each entry in the file, without comments and blank lines."""
    for binding in parse_stream(io.StringIO(_read(path))):
        if binding.key is None and not binding.error:
            continue
        # The parser counts blank lines before an entry as part of it.
        written = binding.original.string
        blank = written[: len(written) - len(written.lstrip())].count("\n")
        yield binding.original.line + blank, binding


def _read(path: Path) -> str:
    text = read_text(path, BadSetting, most=MAX_BYTES)
    # The parser searches for a comment after each blank, so its running time is quadratic.
    if (blanks := _BLANKS.search(text)) is not None:
        line = text.count("\n", 0, blanks.start()) + 1
        raise BadSetting(f"{path}:{line}: more than {MOST_BLANKS} consecutive blanks; remove them")
    return text


def _problem(binding: Binding, first_line: Mapping[str, int]) -> str | None:
    """Return a description of what is wrong with an entry, or None if it is valid."""
    name, text = binding.key, binding.value
    if binding.error or name is None or text is None or len(name) > _SHOWN:
        # An invalid line may contain a secret. The import is here because valid presets do not need it.
        from statek_sim.cassettes.redaction import plain_setting  # noqa: PLC0415

        return f"{plain_setting(_shown(binding.original.string.strip()))!r}: expected KEY=VALUE"
    if name in first_line:
        return f"{name}: already set on line {first_line[name]}"
    if name not in VARIABLES and not name.upper().startswith(PREFIX):
        return _unprefixed(name)
    if not text:
        return f"{name}: empty value; omit the line to keep STATEK's default"
    try:
        StatekSettings.from_env({name: text})
    except BadSetting as error:
        return _shown(str(error))
    return None


def located_preset(name_or_path: str) -> str:
    """Return a built-in preset's name unchanged, or a preset file's absolute path.

    A relative path is resolved against the process's working directory, not the scenario file's folder. Raises
    `BadSetting` for anything else.
    """
    preset = load_preset(name_or_path)
    return name_or_path if name_or_path in BUILT_IN else str(preset.path.resolve())


def _shown(text: str) -> str:
    """Return a string for an error message, truncated to 400 characters."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _unprefixed(name: str) -> str:
    prefixed = PREFIX + name.upper()
    advice = f"write {prefixed!r}" if prefixed in VARIABLES else f"expected a name with {PREFIX!r}"
    return f"{name}: STATEK reads unprefixed names only from its own .env file; {advice}"
