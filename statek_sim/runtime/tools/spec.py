"""Tool specifications for a request's `tools` list, and the selection of the tools that a request offers.

Summaries and parameter descriptions are taken from the tools' docstrings (behaviour 12). LLM_TOOLS_SCOPE
selects the tools (6.6).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.resources import files
from types import FunctionType, NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.tools.future_calls import once_per_function
from statek_sim.values import JSON, ToolSpec

_TYPE_NAMES: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    tuple: "array",
    set: "array",
    frozenset: "array",
    dict: "object",
    NoneType: "null",
}

VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def tool_spec(function: Callable[..., object], *, union_hints: bool) -> ToolSpec:
    """Return `function`'s specification in OpenAI's format. It is cached, so do not modify it.

    With `union_hints`, the hint `X | None` means the same as `Optional[X]`, as in STATEK from 1.4.0 on;
    otherwise it means an array.
    """
    return _SPECS[union_hints](function)


def _build(function: Callable[..., object], *, union_hints: bool) -> ToolSpec:
    docstring = read_tool_docstring(function)
    hints = type_hints(function)
    properties: dict[str, JSON] = {}
    required: list[JSON] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name.startswith("_") or parameter.kind in VARIADIC:
            continue
        schema: dict[str, JSON] = {"type": _type_name(hints.get(name), union_hints=union_hints)}
        if name in docstring.parameters:
            schema["description"] = docstring.parameters[name]
        properties[name] = schema
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    parameters: dict[str, JSON] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    spec: dict[str, JSON] = {
        "name": function.__name__,
        "description": docstring.summary,
        "parameters": parameters,
    }
    return {"type": "function", "function": spec}


_SPECS: Final = {flag: once_per_function(partial(_build, union_hints=flag)) for flag in (False, True)}


def type_hints(function: Callable[..., object]) -> Mapping[str, object]:
    """Return the resolved type hints, or the raw annotations if any of them cannot be resolved."""
    try:
        return get_type_hints(function)
    except Exception:  # noqa: BLE001  # a user's annotation is foreign code
        return getattr(function, "__annotations__", {})


def real_type(kind: type) -> type:
    """Return the date type that freezegun's `kind` replaces; `kind` if it is a type of another package.

    A module imported while the wall clock is frozen has freezegun's types in its annotations for good.
    """
    return kind.__bases__[0] if kind.__module__ == "freezegun.api" else kind


def _type_name(hint: object, *, union_hints: bool) -> str:
    """Return a hint's JSON Schema type, or `string` if it has none.

    For a union, this is the type of the first member that is not None.
    """
    origin = get_origin(hint)
    if origin is Union or (union_hints and origin is UnionType):
        members = [member for member in get_args(hint) if member is not NoneType]
        return _type_name(members[0], union_hints=union_hints) if members else "null"
    if origin is not None:
        return "object" if isinstance(origin, type) and issubclass(origin, dict) else "array"
    return _TYPE_NAMES.get(hint, "string")


_HEADERS: Final = frozenset(
    {
        *("Args", "Arguments", "Attributes", "Returns", "Return", "Raises", "Raise"),
        *("Example", "Examples", "Note", "Notes", "Tags", "STATEK-ACL"),
    }
)
_ENTRY: Final = re.compile(r"\s{4,}(?P<name>\w+)\s*(?:\((?P<type>[^)]+)\))?\s*:\s*(?P<text>.*)")
_CONTINUATION: Final = re.compile(r"\s{8,}(?P<text>.+)")
_RETURNED: Final = re.compile(r"\s*(?P<type>\S+)\s*:\s*(?P<text>.*)")

_VARIANTS: Final = "VARIANTS/"
_VARIANT: Final = re.compile(r"/([A-Za-z0-9]{0,8}):")
_WANTED_VARIANT: Final = "tool"


@dataclass(frozen=True, slots=True)
class Described:
    """An entry in a docstring section: a parameter, an attribute or an exception, with its description."""

    name: str
    type: str | None
    text: str | None

    def line(self) -> str:
        """Return the entry as a section line, such as `    name (type): text`."""
        return f"    {self.name}{f' ({self.type})' if self.type else ''}: {self.text}"


@dataclass(frozen=True, slots=True)
class Sections:
    """A parsed docstring: first paragraph, remaining text before the first section, and sections keyed by title."""

    summary: str
    more: str
    by_title: Mapping[str, list[str]]

    @property
    def whole(self) -> str:
        """The whole description before the first section."""
        summary, more = tool_variant(self.summary), tool_variant(self.more).strip()
        return f"{summary}\n\n{more}" if more else summary

    def items(self, title: str) -> list[Described]:
        """Return the entries in the section with this title, or an empty list if there is none."""
        entries = _entries(self.by_title.get(title, ()))
        return [Described(name, kind, tool_variant(" ".join(texts))) for name, kind, texts in entries]

    def returned(self) -> str | None:
        """Return the Returns section's text without the type, or None if there is no such section."""
        lines = [line for line in self.by_title.get("Returns", ()) if line.strip()]
        if not lines:
            return None
        first = _RETURNED.fullmatch(lines[0])
        texts = [first["text"] if first else lines[0], *lines[1:]]
        return tool_variant(" ".join(text.strip() for text in texts).strip())


def sections_of(text: str) -> Sections:
    """Parse a Google-style docstring; if a title occurs several times, the last section counts."""
    lines = text.split("\n")
    titles = [(index, title) for index, line in enumerate(lines) if (title := _header_of(line.strip()))]
    ends = [index for index, _ in titles[1:]] + [len(lines)]
    described = lines[: titles[0][0]] if titles else lines
    length = next((index for index, line in enumerate(described) if not line.strip()), len(described))
    return Sections(
        summary=" ".join(line.strip() for line in described[:length]),
        more="\n".join(described[length:]).strip(),
        by_title={title: lines[start + 1 : end] for (start, title), end in zip(titles, ends, strict=False)},
    )


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, str | None, list[str]]]:
    """Yield each entry's name, type and lines.

    Entries are indented by at least 4 spaces, continuation lines by at least 8.
    """
    found: tuple[str, str | None, list[str]] | None = None
    for line in lines:
        if entry := _ENTRY.fullmatch(line):
            if found is not None:
                yield found
            first = entry["text"].strip()
            found = entry["name"], entry["type"], [first] if first else []
        elif found is not None and (more := _CONTINUATION.fullmatch(line)):
            found[2].append(more["text"].strip())
    if found is not None:
        yield found


@dataclass(frozen=True, slots=True)
class ToolDocstring:
    """The parts of a tool's docstring used in its specification: the summary and the parameter descriptions."""

    summary: str
    parameters: Mapping[str, str]


def read_tool_docstring(function: Callable[..., object]) -> ToolDocstring:
    """Return the parts of the Google-style docstring of `function` that STATEK uses.

    The summary is the first paragraph on one line. If any parameter, even a private one, is missing under
    `Args:`, STATEK uses only the first line and no parameter descriptions.
    """
    text = inspect.getdoc(function)
    if not text:
        return ToolDocstring("", {})
    sections = sections_of(text)
    described = {
        name: tool_variant(" ".join(filter(None, texts)))
        for name, _, texts in _entries(sections.by_title.get("Args", ()))
    }
    if not own_parameters(function) <= described.keys():
        return ToolDocstring(text.split("\n")[0].strip(), {})
    return ToolDocstring(tool_variant(sections.summary), described)


def tool_variant(text: str) -> str:
    """Return the `tool` variant of a string such as `VARIANTS/:default text/tool:tool text`, else the default variant.

    A string that does not start with `VARIANTS/` is returned unchanged.
    """
    body = text.lstrip()
    if not body.startswith(_VARIANTS):
        return text
    _, *pieces = _VARIANT.split(body.removeprefix(_VARIANTS[:-1]))
    if not pieces:
        return text
    variants = {name.lower(): variant for name, variant in zip(pieces[::2], pieces[1::2], strict=True)}
    return variants.get(_WANTED_VARIANT, variants.get("", ""))


def _header_of(content: str) -> str | None:
    """Return the section title on a stripped line, or None."""
    name = content.rstrip(":")
    return name if name != content and name in _HEADERS else None


def own_parameters(function: Callable[..., object]) -> set[str]:
    """Return the names of the parameters that a complete `Args:` section must describe."""
    ignored = {"self", "cls"}
    if getattr(function, "__is_subtask__", False):
        ignored.add("id")
    parameters = inspect.signature(function).parameters
    return {name for name, it in parameters.items() if name not in ignored and it.kind not in VARIADIC}


@dataclass(frozen=True, slots=True)
class SystemToolSpec:
    """A system tool in a STATEK release.

    It consists of the specification in requests, the chat styles (None for all), and the documentation.
    `docstr` and `brief` contain the output of the tools with these names.
    """

    name: str
    spec: ToolSpec
    target: frozenset[ChatStyle] | None
    docstr: str
    brief: str


_CALLABLES: Final[dict[Callable[..., Any], SystemToolSpec]] = {}


def stands_for(function: Callable[..., Any], tool: SystemToolSpec) -> None:
    """Register `function` as a system tool's callable. This uses a table, because agents would see an attribute."""
    _CALLABLES[function] = tool


def system_tool(function: object) -> SystemToolSpec | None:
    """Return the system tool for which a callable is registered, or None."""
    return _CALLABLES.get(function) if isinstance(function, FunctionType) else None


@cache
def system_tool_specs(version: str) -> tuple[SystemToolSpec, ...]:
    """Return a STATEK release's system tools, in registration order.

    The data was captured from the release's requests by `tools/capture_system_tools.py`. Do not change it.
    """
    return tuple(
        SystemToolSpec(
            name=entry["spec"]["function"]["name"],
            spec=entry["spec"],
            target=None if entry["target"] is None else frozenset(map(ChatStyle, entry["target"])),
            docstr=entry["docstr"],
            brief=entry["brief"],
        )
        for entry in _captured(version)["tools"]
    )


_Documented = TypeVar("_Documented", bound=Callable[..., Any])


def with_statek_docstring(function: _Documented) -> _Documented:
    """Replace a function's docstring with that of STATEK 1.4.2, which models see and which counts as request size."""
    function.__doc__ = _captured("1.4")["docstrings"][function.__name__]
    return function


@dataclass(frozen=True, slots=True)
class Documentation:
    """The output of `docstr` and `brief` for a tool."""

    docstr: str
    brief: str


def statek_documentation(what: Callable[..., Any]) -> Documentation | None:
    """Return STATEK 1.4.2's documentation of a tool that replaces one of STATEK's, or None for an application's tool.

    Raises NotImplementedError for STATEK's other functions and classes, whose documentation is not captured.
    """
    if not is_internal(what):
        return None
    name = what.__qualname__
    entry = _captured("1.4")["documentation"].get(name)
    if entry is None:
        raise NotImplementedError(
            f"the reference runtime has no documentation of STATEK's {name}; use the real package"
        )
    return Documentation(**entry)


def is_internal(what: Callable[..., Any]) -> bool:
    """Return whether the runtime or the shim defines a function or class, outside functions that make tools."""
    module = getattr(what, "__module__", None) or ""
    return module.startswith(_INTERNAL) and "<locals>" not in getattr(what, "__qualname__", "<locals>")


_INTERNAL: Final = ("statek_sim.runtime.", "statek_sim.shim.", "statek_sim.errors", "statek_sim.harness.")


@cache
def _captured(version: str) -> Mapping[str, Any]:
    name = f"system_tools_{version.replace('.', '_')}.json"
    found: Mapping[str, Any] = json.loads(files("statek_sim.runtime.tools").joinpath(name).read_text("utf-8"))
    return found


_Tool = TypeVar("_Tool")

_CATEGORIES: Final = ("SYSTEM", "APPLICATION", "ALL")
_MARKER: Final = re.compile(r"([+-])")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsScope:
    """A parsed LLM_TOOLS_SCOPE: the category (or None), and the names of added and removed tools, in order."""

    category: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def parse_tools_scope(text: str) -> ToolsScope:
    """Parse `[SYSTEM|APPLICATION|ALL] (+name,... | -name,...)*`; raises ValueError with STATEK's messages."""
    head, *lists = _MARKER.split(text.strip())
    added: list[str] = []
    removed: list[str] = []
    category = _category(head)
    for marker, names in zip(lists[::2], lists[1::2], strict=True):
        (added if marker == "+" else removed).extend(_names(names))
    return ToolsScope(category=category, added=tuple(added), removed=tuple(removed))


def _category(text: str) -> str | None:
    """Return the category before the first list of names, or None."""
    written = text.strip()
    if not written:
        return None
    if written.upper() not in _CATEGORIES:
        raise ValueError(f"Invalid LLM_TOOLS_SCOPE category: {written!r}")
    return written.upper()


def _names(text: str) -> list[str]:
    """Return the tool names in a comma-separated list; raises ValueError for an invalid name."""
    names = [name.strip() for name in text.split(",")]
    if not all(_NAME.fullmatch(name) for name in names):
        raise ValueError(f"Invalid LLM_TOOLS_SCOPE tool list: {text!r}")
    return names


def select_tools(
    scope_text: str | None,
    available: Sequence[_Tool],
    system_tools: Sequence[_Tool],
    chat_style: ChatStyle | None,
) -> tuple[_Tool, ...]:
    """Return the tools offered in a request, in order. If there are none, the request has no `tools` key.

    `available` are the agent's own tools, `system_tools` the registered system tools. A tool is any object
    with `__name__` and, optionally, `tool_system`, `tool_target` (a style, a collection of styles, or None
    for all) and `tool_hidden`. Without a chat style, no tool is excluded because of its style. Raises
    ValueError, which ends the job, for names of unknown tools, tools for another style, and removed tools
    that were not selected.
    """
    if not scope_text:
        return ()
    scope = parse_tools_scope(scope_text)
    own = [tool for tool in available if not getattr(tool, "tool_hidden", False)]
    registered = [tool for tool in system_tools if not getattr(tool, "tool_hidden", False)]
    selected = _by_category(scope.category, own, registered, chat_style)
    selected += [_resolve(name, own, registered, chat_style) for name in scope.added]
    unique = _unique(selected)
    _check_removals(scope.removed, unique, [*own, *registered], chat_style)
    return tuple(tool for tool in unique if _name(tool) not in scope.removed)


def _by_category(
    category: str | None, own: Sequence[_Tool], registered: Sequence[_Tool], chat_style: ChatStyle | None
) -> list[_Tool]:
    """Return the tools in a category that match the style; SYSTEM and ALL include the registered system tools."""
    if category is None:
        return []
    if category == "ALL":
        pool = [*own, *registered]
    elif category == "SYSTEM":
        pool = [*(tool for tool in own if getattr(tool, "tool_system", False)), *registered]
    else:
        pool = [tool for tool in own if not getattr(tool, "tool_system", False)]
    return [tool for tool in pool if fits(tool, chat_style)]


def _check_removals(
    removed: Sequence[str], selected: Sequence[_Tool], known: Sequence[_Tool], chat_style: ChatStyle | None
) -> None:
    """Raise ValueError if a removed name is unknown, belongs to another style, or was not selected."""
    names = [_name(tool) for tool in selected]
    for name in removed:
        _resolve(name, known, (), chat_style)
        if name not in names:
            raise ValueError(f"LLM_TOOLS_SCOPE removal references unselected tool: {name!r}")


def _resolve(
    name: str, own: Sequence[_Tool], registered: Sequence[_Tool], chat_style: ChatStyle | None
) -> _Tool:
    """Return the tool with this name; an agent's own tools take precedence. Raises ValueError for unknown names."""
    for tool in (*own, *registered):
        if _name(tool) == name:
            break
    else:
        raise ValueError(f"LLM_TOOLS_SCOPE references unknown tool: {name!r}")
    if chat_style is not None and not fits(tool, chat_style):
        style = f"<EnumValue ChatStyle.{chat_style.name}>"
        raise ValueError(f"LLM_TOOLS_SCOPE tool {name!r} is not compatible with chat_style {style}")
    return tool


def fits(tool: object, chat_style: ChatStyle | None) -> bool:
    """Return whether a tool may be offered in a chat style."""
    target: object = getattr(tool, "tool_target", None)
    if chat_style is None or target is None:
        return True
    if isinstance(target, (list, tuple, set, frozenset)):
        return chat_style in target
    return target == chat_style


def _unique(tools: Iterable[_Tool]) -> list[_Tool]:
    """Return the tools, dropping later tools with the same name."""
    first: dict[str, _Tool] = {}
    for tool in tools:
        first.setdefault(_name(tool), tool)
    return list(first.values())


def _name(tool: object) -> str:
    """Return the tool's name as the model sees it."""
    name: str = getattr(tool, "__name__", "")
    return name
