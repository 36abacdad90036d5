"""A tool that an agent may call: its name, its description, its parameters' JSON Schema, and its code."""

from __future__ import annotations

import enum
import inspect
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from types import FunctionType, SimpleNamespace
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from statek_sim.agent.effects import Ask, ToolFunction
from statek_sim.agent.option_names import Access
from statek_sim.agent.tools.type_hints import (
    Conversions,
    context_parameter,
    conversion_of,
    converted_arguments,
    docstring_of,
    thawed,
    written,
)
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput, BadTool
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.values import JSON, ToolSpec

_LAMBDA: Final = "<lambda>"
_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_COMPOSED: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"})
"""Schema keywords that may add further properties."""
_SECTION: Final = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$")
_GOOGLE: Final = re.compile(r"^(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_FIELD: Final = re.compile(r"^:param\s+(?:\w+\s+)?(\w+):\s*(.*)$")


@dataclass(frozen=True, slots=True)
class ToolCode:
    """A tool's code, with the details that a driver needs, computed once.

    `waits`: the code is a coroutine function, or an object with an async `__call__`. `context` is the name of its
    `ToolContext` parameter, or None. `conversions` convert a call's JSON values to the hinted types.
    """

    function: ToolFunction
    waits: bool
    context: str | None
    conversions: Conversions = field(default_factory=dict)

    def __call__(self, /, *positional: Any, **named: Any) -> Any:
        """Call the tool's code, with values converted to the hinted types."""
        if self.conversions:
            named = converted_arguments(named, self.conversions)
        return self.function(*positional, **named)


def code_of(function: ToolFunction) -> ToolCode:
    """Return a tool's code in the form that drivers need; raises `TypeError` if it is not callable."""
    if isinstance(function, ToolCode):
        return function
    if not callable(function):
        raise TypeError(f"expected a function, got {function!r}")
    if type(function) is FunctionType and not function.__dict__:
        # Equals the signature of a plain function, but computing that takes longer than most tools take.
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        waits = bool(code.co_flags & inspect.CO_COROUTINE)
        return ToolCode(function, waits, context_parameter(function, code.co_varnames[:count]))
    waits = any(map(inspect.iscoroutinefunction, (function, written(function), type(function).__call__)))
    try:
        context = context_parameter(function, inspect.signature(function).parameters)
    except ValueError:  # some builtins have no signature
        context = None
    return ToolCode(function, waits, context)


@dataclass(frozen=True, slots=True)
class Happened:
    """Returned by a tool's own check if a call did happen before a crash; contains the call's result."""

    value: object


AfterCrash = Literal["ask", "again"] | Callable[..., Happened | None]
"""How to handle a call whose outcome is unknown after a crash: ask a person, call again, or run a check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. Its values must not be changed.

    `run` is converted to a `ToolCode`. `timeout` is in seconds (None: the harness's timeout); `server` is where a tool
    comes from if it is not local. A tool with `asks` runs no code: a person is asked that question, with `{argument}`
    filled in, and the reply is the result. `access` marks arguments that are paths to read or write, hosts to connect
    to, or commands to run; `sandboxed` means that commands run in a container.

    `after_crash` determines how to handle a call whose outcome is unknown because the process died during it: ask a
    person, repeat the call (for read-only tools), or pass the call's arguments to a function that returns a `Happened`,
    or None if the call did not happen.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]
    run: ToolFunction
    tags: tuple[str, ...] = ()
    timeout: float | None = None
    server: str | None = None
    asks: Ask | None = None
    access: Mapping[str, Access] = field(default_factory=dict)
    sandboxed: bool = False
    after_crash: AfterCrash = "ask"

    def __post_init__(self) -> None:
        """Inspect the code once; raises `BadTool` if it is not callable."""
        try:
            object.__setattr__(self, "run", code_of(self.run))
        except TypeError as error:
            raise BadTool(f"tool {self.name!r}: {error}") from None
        wrong = next((kind for kind in self.access.values() if kind not in get_args(Access)), None)
        if wrong is not None:
            raise BadTool(
                f"tool {self.name!r}: access {wrong!r} is unknown; expected {', '.join(get_args(Access))}"
            )

    @property
    def spec(self) -> ToolSpec:
        """The tool as an entry in a request's `tools`, in OpenAI's format."""
        function: dict[str, JSON] = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}


def api_format(tools: Iterable[Tool], api: str) -> list[dict[str, JSON]]:
    """Return tools in an API's format: `openai`, `responses`, `anthropic`, `gemini`, or `mcp` as in `tools/list`.

    Raises `BadInput` for any other format.
    """
    described = [
        ({"name": tool.name, "description": tool.description}, dict(tool.parameters)) for tool in tools
    ]
    match api:
        case "openai":
            return [
                {"type": "function", "function": {**about, "parameters": schema}}
                for about, schema in described
            ]
        case "responses":
            return [{"type": "function", **about, "parameters": schema} for about, schema in described]
        case "anthropic":
            return [{**about, "input_schema": schema} for about, schema in described]
        case "gemini":
            return [{**about, "parametersJsonSchema": schema} for about, schema in described]
        case "mcp":
            return [{**about, "inputSchema": schema} for about, schema in described]
    raise BadInput(f"api_format: {api!r}: expected openai, responses, anthropic, gemini or mcp")


def tool_from(
    function: ToolFunction,
    *,
    name: str | None = None,
    description: str | None = None,
    tags: Sequence[str] = (),
    timeout: float | None = None,
    access: Mapping[str, Access] | None = None,
    after_crash: AfterCrash = "ask",
) -> Tool:
    """Convert a plain function to a tool: the model sees its name, docstring and type hints.

    Raises `BadTool` if it is not a function, for parameters that cannot be passed by name, and for hints without a JSON
    Schema.
    """
    if not callable(function):
        raise BadTool(f"{function!r} is not a tool; expected a function or a Tool")
    called = name or getattr(function, "__name__", None)
    if called in (None, _LAMBDA):
        raise BadTool(f"{function!r} has no name; create the tool with tool_from(..., name=...)")
    assert isinstance(called, str)
    summary, described = _docstring(docstring_of(function))
    parameters, conversions = _schema(function, called, described)
    return Tool(
        name=called,
        description=summary if description is None else description,
        parameters=parameters,
        run=replace(code_of(function), conversions=conversions),
        tags=_tags(called, tags),
        timeout=timeout,
        access=dict(access or {}),
        after_crash=after_crash,
    )


def tool_of_schema(
    name: str,
    description: str,
    parameters: Mapping[str, JSON],
    run: ToolFunction,
    *,
    tags: Sequence[str] = (),
    timeout: float | None = None,
    access: Mapping[str, Access] | None = None,
) -> Tool:
    """Return a tool whose parameters are given as JSON Schema; the schema is copied.

    Raises `BadTool` for code that does not accept one of the schema's arguments, or requires one that the schema does
    not have.
    """
    _check_takes(name, parameters, run)
    return Tool(
        name=name,
        description=description,
        parameters=_copied(parameters),
        run=run,
        tags=_tags(name, tags),
        timeout=timeout,
        access=dict(access or {}),
    )


def _check_takes(name: str, schema: Mapping[str, JSON], function: ToolFunction) -> None:
    """Raise `BadTool` if every call, or every call with a certain argument, would raise a TypeError."""
    if type(function) is FunctionType and function.__code__.co_flags & inspect.CO_VARKEYWORDS:
        # Accepts everything; most tools with a schema do, and computing a signature is slow.
        return
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # not a function (reported later), or a builtin
        return
    declared = schema.get("properties")
    if not isinstance(declared, dict) or any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
    ):
        return
    context = context_parameter(function, parameters)
    taken = {p.name: p for p in parameters.values() if p.kind in _NAMED and p.name != context}
    unknown = [argument for argument in declared if argument not in taken]
    missing = [p.name for p in taken.values() if p.default is p.empty and p.name not in declared]
    wrote = getattr(function, "__name__", repr(function))
    if unknown:
        raise BadTool(
            f"tool {name!r}: its schema has {', '.join(unknown)}, which {wrote}({', '.join(taken)}) does not take; "
            f"expected a parameter of that name, or **arguments.{suggestion(unknown[0], taken)}".removesuffix(
                "."
            )
        )
    if missing and _COMPOSED.isdisjoint(schema):
        raise BadTool(
            f"tool {name!r}: {wrote} requires {', '.join(missing)}, which its schema lacks; add it to "
            f"the properties ({', '.join(declared) or 'none'}), or give it a default"
        )


def _tags(name: str, tags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise BadTool(f"tool {name!r}: tags is {tags!r}; expected a list of strings")
    return tuple(tags)


def _copied(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    def copy(value: JSON) -> JSON:
        if isinstance(value, dict):
            return {key: copy(item) for key, item in value.items()}
        return [copy(item) for item in value] if isinstance(value, list) else value

    return {key: copy(value) for key, value in schema.items()}


def _schema(
    function: Callable[..., Any], name: str, described: Mapping[str, str]
) -> tuple[Mapping[str, JSON], Conversions]:
    """Return the schema of a function's parameters, and converters for types that JSON does not have."""
    try:
        parameters = inspect.signature(function).parameters
        context = context_parameter(function, parameters)
        hints = _hints(written(function), {"return", context})
    except (NameError, TypeError, ValueError) as error:
        raise BadTool(f"tool {name!r}: its parameters cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    types: dict[str, Any] = {}
    for number, parameter in enumerate(parameters.values()):
        if parameter.name == context:
            continue
        if parameter.kind in _VARIADIC or parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise BadTool(
                f"tool {name!r}: parameter {parameter.name!r} is {parameter.kind.description}; expected a "
                "parameter that can be passed by name"
            )
        hint = types[parameter.name] = hints.get(parameter.name, Any)
        about: dict[str, Any] = {}
        if parameter.name in described:
            about["description"] = described[parameter.name]
        field_name = parameter.name
        if field_name.startswith(("_", "model_")) or hasattr(BaseModel, field_name):
            # pydantic reserves such names.
            field_name, about["alias"] = f"parameter {number}", parameter.name
        fields[field_name] = (Annotated[hint, Field(**about)] if about else hint, _default(parameter))
    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        schema: dict[str, JSON] = model.model_json_schema(schema_generator=_SchemaMaker)
        conversions = {
            name: made for name, hint in types.items() if (made := conversion_of(hint)) is not None
        }
    except (PydanticSchemaGenerationError, PydanticUserError, NameError) as error:
        raise BadTool(
            f"tool {name!r}: its type hints cannot be converted to a JSON Schema: {str(error).splitlines()[0]}"
        ) from error
    return _untitled(schema), conversions


def _hints(function: Callable[..., Any], unread: Set[str | None]) -> dict[str, Any]:
    """Return the types of a function's parameters; the hints of `unread` parameters need not be resolvable."""
    wrapped = inspect.unwrap(function)
    annotations = dict(getattr(function, "__annotations__", {}))
    if unread.isdisjoint(annotations):
        return thawed(get_type_hints(function, include_extras=True))
    annotations = {name: hint for name, hint in annotations.items() if name not in unread}
    named = SimpleNamespace(__annotations__=annotations, __globals__=getattr(wrapped, "__globals__", {}))
    return thawed(get_type_hints(named, include_extras=True))


def _default(parameter: inspect.Parameter) -> Any:
    """Return a parameter's default for pydantic; a default that JSON cannot express is left out of the schema."""
    default = parameter.default
    if default is inspect.Parameter.empty:
        return ...
    if isinstance(default, float) and not math.isfinite(default):
        return Field(default_factory=lambda: default)
    return default


class _SchemaMaker(GenerateJsonSchema):
    """Leaves out defaults that are not JSON without a warning, because the function still has them."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Ignore a default that is not JSON."""
        if kind != "non-serializable-default":
            super().emit_warning(kind, detail)


def _untitled(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the schema without the titles that pydantic derives from names, which would only cost tokens.

    Tuples get `items`, without which OpenAI rejects an array.
    """

    def plain(value: JSON, *, names: bool = False) -> JSON:
        if isinstance(value, dict):
            kept = {
                key: plain(item, names=key in ("properties", "$defs") and not names)
                for key, item in value.items()
                if names or key != "title" or not isinstance(item, str)
            }
            return {"items": {}, **kept} if "prefixItems" in kept and not names else kept
        return [plain(item) for item in value] if isinstance(value, list) else value

    written = plain(dict(schema))
    assert isinstance(written, dict)
    return written


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a docstring's text before its sections, and its parameter descriptions (Google style or reST)."""
    summary: list[str] = []
    described: dict[str, str] = {}
    section, current = "", ""
    for line in text.splitlines():
        stripped = line.strip()
        if found := _SECTION.match(stripped):
            section, current = found[1], ""
        elif found := _FIELD.match(stripped):
            section, current = "Args", found[1]
            described[current] = found[2]
        elif section in ("Args", "Arguments", "Parameters"):
            if (found := _GOOGLE.match(stripped)) and not line.startswith(" " * 6):
                current = found[1]
                described[current] = found[2]
            elif stripped and current:
                described[current] = f"{described[current]} {stripped}".strip()
        elif not section and not stripped.startswith(":"):
            summary.append(stripped)
    return " ".join(" ".join(summary).split()), described


MOST_ITEMS: Final = 100_000
"""The maximum number of items to read from an iterator; a model could not read more."""


def read_to_end(value: Any) -> Any:
    """Return an iterator's items as a list, and any other result unchanged.

    Raises `TypeError` for an iterator with more than `MOST_ITEMS` items.
    """
    if not isinstance(value, Iterator):
        return value
    items = list(islice(value, MOST_ITEMS + 1))
    if len(items) > MOST_ITEMS:
        raise TypeError(f"its result is an iterator of more than {MOST_ITEMS:,} items; return a list")
    return items


def result_text(value: object) -> str:
    """Return a tool's result as the model sees it: a string unchanged, any other value as JSON if possible.

    A set's items are sorted by their JSON, and memory addresses are removed from Python's representations, so that the
    text depends neither on hashes nor on memory. An iterator is exhausted; raises `TypeError` for an endless one.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, enum.Enum):
        return result_text(value.value)
    value = read_to_end(value)
    try:
        return _json(_ordered(value, _ANYTHING.dump_python(value, mode="json", fallback=_known_to_some)))
    except (ValueError, TypeError, RecursionError):
        return without_addresses(_words(value))


_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_COLLECTIONS: Final = (list, tuple, set, frozenset)
_LISTED: Final = (*_COLLECTIONS, deque)


def _known_to_some(value: object) -> object:
    """Return JSON for values that pydantic can serialize only since 2.14."""
    if isinstance(value, deque):
        return list(value)
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be serialized to JSON")


def _json(dumped: Any) -> str:
    """Return JSON text with floats in Python's notation, as pydantic releases differ. Non-finite numbers are null."""
    try:
        text = _encode(dumped)
    except ValueError:
        text = _encode(_finite(dumped))
    text.encode()  # a lone surrogate has no JSON
    return text


def _finite(dumped: Any) -> Any:
    if isinstance(dumped, float):
        return dumped if math.isfinite(dumped) else None
    if isinstance(dumped, dict):
        return {key: _finite(item) for key, item in dumped.items()}
    return [_finite(item) for item in dumped] if isinstance(dumped, list) else dumped


def _ordered(value: object, dumped: Any) -> Any:
    """Return `dumped`, the JSON form of `value`, with the items of sets sorted by their JSON."""
    if isinstance(value, RootModel):
        return _ordered(value.root, dumped)
    if isinstance(dumped, dict):
        if not isinstance(value, dict):  # a model or a dataclass, by field names
            return {key: _ordered(getattr(value, key, None), item) for key, item in dumped.items()}
        if len(value) == len(dumped):
            pairs = zip(value.values(), dumped.items(), strict=True)
            return {key: _ordered(inner, item) for inner, (key, item) in pairs}
    elif isinstance(dumped, list) and isinstance(value, _LISTED) and len(value) == len(dumped):
        items = [_ordered(inner, item) for inner, item in zip(value, dumped, strict=True)]
        return sorted(items, key=_json) if isinstance(value, set | frozenset) else items
    return dumped


def _words(value: object) -> str:
    """Return a value that JSON cannot express as Python writes it, with the items of sets sorted."""
    if type(value) is dict:
        return "{" + ", ".join(f"{_inner(key)}: {_inner(item)}" for key, item in value.items()) + "}"
    if type(value) is list:
        return f"[{', '.join(map(_inner, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(_inner, value))}{',' * (len(value) == 1)})"
    if type(value) in (set, frozenset) and value:
        items = f"{{{', '.join(sorted(map(_inner, value)))}}}"  # type: ignore[call-overload]  # it is a set
        return items if type(value) is set else f"frozenset({items})"
    return str(value)


def _inner(value: object) -> str:
    return _words(value) if type(value) in (dict, *_COLLECTIONS) else repr(value)
