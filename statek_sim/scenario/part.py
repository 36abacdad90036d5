"""Basic types for scenario files: frozen mappings without unknown keys, durations, names, and references to objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, Strict, model_validator
from pydantic_core import PydanticCustomError

from statek_sim.clock import EPOCH
from statek_sim.scenario.problem import Keypath
from statek_sim.values import JSON

T = TypeVar("T")

# Strict mode accepts only tuples; YAML has lists. The elements stay strict.
Items = Annotated[tuple[T, ...], Strict(False)]
"""A list in a file, read as a tuple."""

Count = Annotated[int, Field(ge=0)]
"""A whole number, 0 or more."""

Positive = Annotated[int, Field(gt=0)]
"""A whole number, 1 or more."""

_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_DURATION_PATTERN: Final = r"^(?=.)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?$"


def _seconds_of(value: object) -> object:
    """Return the seconds in a duration such as `1d` or `2h30m`; values that are not strings are returned unchanged."""
    if not isinstance(value, str):
        return value
    parts = re.fullmatch(_DURATION_PATTERN, value)
    if parts is None:
        raise refused(f"expected a number of seconds or a duration such as '2h30m', got {value!r}")
    return sum(
        float(count) * unit for count, unit in zip(parts.groups(), _UNITS.values(), strict=True) if count
    )


Seconds = Annotated[
    float,
    Field(ge=0),
    BeforeValidator(
        _seconds_of,
        json_schema_input_type=Annotated[float, Field(ge=0)]
        | Annotated[str, Field(pattern=_DURATION_PATTERN)],
    ),
]
"""Virtual seconds: a number, or a duration such as `90s`, `1d`, `2h30m`."""

_MOMENT_PATTERN: Final = r"^(today|tomorrow|\d{4}-\d\d-\d\d) (\d\d:\d\d)$"


def _seconds_until(value: object) -> object:
    """Return the seconds in a duration, or from the start of a run to a time such as `tomorrow 09:00`."""
    found = re.fullmatch(_MOMENT_PATTERN, value) if isinstance(value, str) else None
    if found is None:
        return _seconds_of(value)
    days = {"today": EPOCH.date(), "tomorrow": EPOCH.date() + timedelta(days=1)}
    try:
        day = days.get(found[1]) or date.fromisoformat(found[1])
        moment = datetime.combine(day, time.fromisoformat(found[2]), tzinfo=UTC)
    except ValueError as error:
        raise refused(f"{value!r}: {error}") from None
    if moment < EPOCH:
        raise refused(f"{value!r} is before the start of the run, {EPOCH:%Y-%m-%d %H:%M} UTC")
    return (moment - EPOCH).total_seconds()


Moment = Annotated[
    float,
    Field(ge=0),
    BeforeValidator(
        _seconds_until,
        json_schema_input_type=Annotated[float, Field(ge=0)]
        | Annotated[str, Field(pattern=f"{_DURATION_PATTERN}|{_MOMENT_PATTERN}")],
    ),
]
"""A virtual second of the run: a number, a duration since the start, or a time in UTC such as `tomorrow 09:00`."""

ID_PATTERN: Final = r"^[a-z0-9]+(-[a-z0-9]+)*$"
NAME_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
TOOL_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*$|^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$"
CALLABLE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$"

READER_PATTERN: Final = r"^rescue$|" + CALLABLE_PATTERN

MONEY_PATTERN: Final = r"^[0-9]+(\.[0-9]+)?$"

PATTERN_WORDS: Final[Mapping[str, str]] = {
    ID_PATTERN: "lower-case letters, digits and single dashes, like 'turns-one-over'",
    NAME_PATTERN: "a name of letters, digits, '_', '-' or '.', starting with a letter",
    TOOL_PATTERN: "a built-in tool's name or 'module:attribute'",
    CALLABLE_PATTERN: "'module:attribute'",
    READER_PATTERN: "'rescue' or 'module:attribute'",
    MONEY_PATTERN: 'an amount as a string, like "0.05"',
}
"""The patterns' descriptions for error messages."""

Id = Annotated[str, Field(pattern=ID_PATTERN)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Money = Annotated[str, Field(pattern=MONEY_PATTERN)]
ToolName = Annotated[str, Field(pattern=TOOL_PATTERN)]
CallableName = Annotated[str, Field(pattern=CALLABLE_PATTERN)]


def key(default: Any, description: str, **settings: Any) -> Any:
    """Return the field for an optional key, with its default and its description.

    `default` may be a function that creates the default. `settings` are passed to `Field`.
    """
    if callable(default):
        return Field(default_factory=default, description=description, **settings)
    return Field(default, description=description, **settings)


def also_text(title: str, description: str) -> Callable[[dict[str, JsonValue]], None]:
    """Return a `json_schema_extra` that also allows a string instead of the mapping."""

    def allow_text(schema: dict[str, JsonValue]) -> None:
        mapping = dict(schema)
        schema.clear()
        text: dict[str, JsonValue] = {"type": "string", "description": description}
        schema.update({"title": title, "anyOf": [text, mapping]})

    return allow_text


class Part(BaseModel):
    """A mapping in a scenario file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def said(self, key: str) -> bool:
        """Return whether `key` is given in the file; an explicit null counts, a default does not."""
        return key in self.model_fields_set

    def said_items(self) -> Iterator[tuple[str, object]]:
        """Yield the keys and values given in the file, in field order."""
        for key in type(self).model_fields:
            if key in self.model_fields_set:
                yield key, getattr(self, key)


class PartOrText(Part):
    """A mapping, or a string as shorthand for a mapping with this value under `text_key`."""

    text_key: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {cls.text_key: value} if isinstance(value, str) else value


def refused(message: str) -> PydanticCustomError:
    """Return the validation error for a value that the format does not allow; `message` explains it."""
    return PydanticCustomError("refused", "{message}", {"message": message})


def exactly_one(part: Part, keys: Sequence[str]) -> str:
    """Return the only one of `keys` given in the file; raises a validation error if none or several are given."""
    given = [key for key in keys if part.said(key)]
    if len(given) != 1:
        raise refused(f"expected exactly one of {', '.join(keys)}; got {' and '.join(given) or 'none'}")
    return given[0]


def shape(value: object) -> str:
    """Return the YAML shape of a value, such as `<list>`, `<mapping>` or `<text>`, as the tag of a union member."""
    match value:
        case Mapping() | BaseModel():
            return "<mapping>"
        case list() | tuple():
            return "<list>"
        case str():
            return "<text>"
        case bool():
            return "<flag>"
        case int() | float():
            return "<number>"
        case None:
            return "<null>"
        case _:
            return "<unknown>"


WorldKind = Literal["owner", "queue", "item", "future"]
WORLD_KINDS: Final[tuple[WorldKind, ...]] = get_args(WorldKind)


@dataclass(frozen=True, slots=True)
class WorldReference:
    """A reference to an object in the built-in world; `name` is empty for the queue and for the queue's own owner."""

    kind: WorldKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class JobReference:
    """A reference to a job in the scenario."""

    name: str


def as_reference(value: JSON) -> WorldReference | JobReference | None:
    """Return the reference in `value`, or None for a plain value; raises ValueError for a malformed reference."""
    if not isinstance(value, dict) or not any(key.startswith("$") for key in value):
        return None
    if len(value) != 1:
        raise ValueError("a reference is a mapping with one key, $world or $job")
    (key, target), *_ = value.items()
    if key == "$job" and isinstance(target, str):
        return JobReference(target)
    if key == "$world" and isinstance(target, str):
        return _world_reference(target)
    raise ValueError(f"expected {{$world: text}} or {{$job: text}}, got the key {key!r}")


def references_in(
    value: JSON, keypath: Keypath = ()
) -> Iterator[tuple[Keypath, WorldReference | JobReference]]:
    """Yield every reference in `value` with its key path; raises ValueError for a malformed reference."""
    reference = as_reference(value)
    if reference is not None:
        yield keypath, reference
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from references_in(inner, (*keypath, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from references_in(inner, (*keypath, position))


def _world_reference(target: str) -> WorldReference:
    kind, colon, name = target.partition(":")
    for known in WORLD_KINDS:
        named = bool(colon and name)
        if kind == known and (named == (known in ("item", "future")) or (known == "owner" and named)):
            return WorldReference(known, name)
    raise ValueError(f"expected owner, owner:ID, queue, item:ID or future:NAME, got {target!r}")
