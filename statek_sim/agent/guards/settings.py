"""Creates built-in guards from their names and settings, as given in a scenario or an application's TOML file.

[[guards]]
guard = "length"
most = 4000
action = "warn"
tiers = ["free"]
environments = ["production"]
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from statek_sim.agent.effects import GuardPoint, SideModel
from statek_sim.agent.guards.guard import Guard
from statek_sim.agent.guards.shipped import MAKERS
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.input_files import read_text, toml_in, why_no_toml

COMMON: Final[Mapping[str, Any]] = {
    "name": str,
    "fails": str,
    "timeout": float,
    "points": tuple[GuardPoint, ...],
    "tiers": frozenset[str],
    "environments": frozenset[str],
}
"""Settings available for every guard, in addition to `action` and the guard's own settings."""
_IN_PYTHON: Final = frozenset({"among", "recognizer"})
"""Settings that are available only in Python."""
_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*guards[ \t]*\]\]", re.MULTILINE)

Judges = Callable[[str], SideModel]
"""Takes the model name given in the setting `by` and returns the model; raises `BadInput` for an unknown name."""


def judge_model(name: str) -> SideModel:
    """Return the model with this name, for use as a judge."""
    return SideModel(model=name, role="judge", prompt="")


def guard_of(entry: Mapping[str, Any], *, judges: Judges = judge_model) -> Guard:
    """Return the guard described by `entry`: `guard` is its name, the rest are its settings.

    Raises `BadInput` for an invalid name, setting or value; the message lists the valid ones.
    """
    kind = entry.get("guard")
    if not isinstance(kind, str) or kind not in MAKERS:
        raise BadInput(
            f"guard {kind!r} is unknown; expected one of {', '.join(MAKERS)}{suggestion(str(kind), MAKERS)}"
        )
    own = settings_of(kind)
    for key in entry:
        if key != "guard" and key not in own and key not in COMMON:
            known = [*own, *COMMON]
            raise BadInput(
                f"guard {kind!r} has no setting {key!r}; expected {', '.join(known)}{suggestion(key, known)}"
            )
    missing = [name for name, needed in own.items() if needed and name not in entry]
    if missing:
        raise BadInput(f"guard {kind!r} needs {', '.join(missing)}")
    hints = _hints(kind)
    if "timeout" in entry and hints.get("by") is SideModel:
        raise BadInput(f"guard {kind!r}: remove timeout; a model has its provider's timeout")
    given = {key: _value(kind, key, hints[key], entry[key], judges) for key in own if key in entry}
    guard = MAKERS[kind](**given)
    common = {key: _value(kind, key, COMMON[key], entry[key], judges) for key in COMMON if key in entry}
    if "points" in common:
        common["points"] = frozenset(common["points"])
    return replace(guard, **common) if common else guard


@cache
def settings_of(kind: str) -> Mapping[str, bool]:
    """Return a built-in guard's own settings, and whether each is required."""
    parameters = inspect.signature(MAKERS[kind]).parameters
    return {
        name: one.default is inspect.Parameter.empty
        for name, one in parameters.items()
        if name not in _IN_PYTHON and name not in COMMON
    }


@cache
def _hints(kind: str) -> Mapping[str, Any]:
    maker = MAKERS[kind]
    return get_type_hints(maker.func if isinstance(maker, partial) else maker)


def _value(kind: str, key: str, hint: Any, value: object, judges: Judges) -> Any:
    if hint is SideModel and isinstance(value, str):
        return judges(value)
    try:
        return _adapter(hint).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = "".join(f"[{step!r}]" for step in first["loc"])
        raise BadInput(f"guard {kind!r}: {key}{at} is {value!r}: {first['msg']}") from None


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def guards_file(file: Path, *, judges: Judges = judge_model) -> tuple[Guard, ...]:
    """Return the guards from a TOML file with `[[guards]]` tables.

    Raises `BadInput` that names an error's `path:line`.
    """
    return tuple(_read(file, judges))


def _read(file: Path, judges: Judges) -> Iterator[Guard]:
    text = read_text(file)
    try:
        parsed = toml_in(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file}:{why_no_toml(error, text)}") from None
    entries = parsed.pop("guards", None)
    if parsed or not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise BadInput(f"{file}: expected only [[guards]] tables, got {_named(parsed, entries)}")
    lines = [text.count("\n", 0, found.start()) + 1 for found in _HEADER.finditer(text)]
    for at, entry in enumerate(entries):
        try:
            yield guard_of(entry, judges=judges)
        except BadInput as error:
            line = lines[at] if len(lines) == len(entries) else 1
            raise BadInput(f"{file}:{line}: {error}") from None


def _named(others: Iterable[str], entries: object) -> str:
    found = [*others, *(["guards"] if entries is not None else [])]
    return ", ".join(found) or "nothing"
