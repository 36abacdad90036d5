"""The tools `docstr` and `brief`, which print the documentation of tools, classes and objects to agents.

The text is generated from a Google-style docstring: a signature, the summary, and sections in STATEK's order.
If the docstring does not describe all parameters, the text is an error (observed with 1.2.7 and 1.4.2).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import UnionType
from typing import Any, ForwardRef, Union, get_args, get_origin, get_type_hints

from statek_sim.runtime.state.context import get_current_agent_name
from statek_sim.runtime.tools.declaration import tool
from statek_sim.runtime.tools.spec import (
    VARIADIC,
    Described,
    Sections,
    is_internal,
    own_parameters,
    real_type,
    sections_of,
    statek_documentation,
    system_tool,
    tool_variant,
    type_hints,
)
from statek_sim.sandbox.ordered_set import without_addresses


class DocstringParseError(Exception):
    """Raised for a missing or incomplete docstring; agents see the class name and the message."""


# -- functions ----------------------------------------------------------------------------------------------------


def function_text(function: Callable[..., Any], *, brief: bool, as_code: bool) -> str:
    """Return a function's documentation; with `as_code`, in the form of a definition.

    Raises `DocstringParseError` if the docstring is missing or incomplete.
    """
    text = inspect.getdoc(function)
    if not text:
        raise DocstringParseError(f"Function '{function.__name__}' has no docstring")
    sections = sections_of(text)
    parameters = sections.items("Args")
    _check_described(function, {item.name for item in parameters})
    returned = _complement_returns(function) or sections.returned()
    style = getattr(function, "_docs_style", None) or {}
    typed = as_code or (brief and bool(style.get("brief_types")))
    signature = _signature(function, parameters, typed=typed)
    summary = tool_variant(sections.summary)
    described = [] if returned is None else [f"Returns: {returned}"]
    if not as_code:
        return "\n".join([signature, *(f"    {line}" for line in (summary, *described))])
    if brief:
        return _as_code(f"def {signature}:", [summary, *described])
    lines = [sections.whole] if sections.whole else []
    lines += _section("Args:", [item.line() for item in parameters])
    lines += _section("Raises:", [f"    {item.name}: {item.text}" for item in sections.items("Raises")])
    lines += described
    lines += _section("Example:", [f"    {line}" for line in _example(sections)])
    return _as_code(f"def {signature}:", lines)


def _example(sections: Sections) -> list[str]:
    lines = sections.by_title.get("Example", sections.by_title.get("Examples", ()))
    text = tool_variant("\n".join(lines).strip())
    return text.split("\n") if text else []


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *lines] if lines else []


def _as_code(head: str, lines: Sequence[str]) -> str:
    first, *rest = lines
    if not rest:
        return f'{head}\n    """{first}"""'
    return "\n".join([head, f'    """{first}', *(f"    {line}" for line in rest), '    """'])


def _check_described(function: Callable[..., Any], described: set[str]) -> None:
    missing = own_parameters(function) - described
    if missing:
        raise DocstringParseError(
            f"Function '{function.__name__}' has undocumented arguments: {', '.join(sorted(missing))}"
        )


def _complement_returns(function: Callable[..., Any]) -> str | None:
    """Return the description of a temporal function's value: the complement's Returns section, else its type hint."""
    complement = getattr(function, "__temporal_complement__", None)
    kind = None if complement is None else _complement_type(function)
    if kind is None:
        return None
    text = inspect.getdoc(complement)
    return (sections_of(text).returned() if text else None) or kind


def _complement_type(function: Callable[..., Any]) -> str | None:
    try:
        hints = get_type_hints(function.__temporal_complement__)  # type: ignore[attr-defined]  # a temporal function
    except Exception:  # noqa: BLE001  # a user's annotation is foreign code
        return None
    return _type_text(hints["return"]) if "return" in hints else None


def _signature(function: Callable[..., Any], described: Sequence[Described], *, typed: bool) -> str:
    hints = type_hints(function) if typed else {}
    shown = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls") or parameter.kind in VARIADIC:
            continue
        text = f"{name}: {_type_text(hints[name])}" if name in hints else name
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}" if typed else f"={_default(parameter.default)}"
        shown.append(text)
    if not shown:
        shown = [f"{item.name}: {item.type}" if typed and item.type else item.name for item in described]
    returned = ""
    if "return" in hints:
        temporal = getattr(function, "__is_temporal__", False)
        returned = f" -> {(temporal and _complement_type(function)) or _type_text(hints['return'])}"
    return f"{function.__name__}({', '.join(shown)}){returned}"


def _default(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _type_text(hint: Any) -> str:
    if isinstance(hint, ForwardRef):
        return hint.__forward_arg__
    origin, members = get_origin(hint), get_args(hint)
    if origin is Union or isinstance(hint, UnionType):
        joined = " | " if origin is Union else ", "
        text = joined.join(_type_text(member) for member in members)
        return text if origin is Union else f"UnionType[{text}]"
    if origin is not None:
        name = getattr(origin, "__name__", str(origin))
        return f"{name}[{', '.join(_type_text(member) for member in members)}]" if members else name
    if isinstance(hint, type):
        hint = real_type(hint)
    if hasattr(hint, "__name__"):
        return str(hint.__name__)
    return str(hint).replace("typing.", "")


# -- classes ------------------------------------------------------------------------------------------------------


def class_text(kind: type, *, brief: bool, as_code: bool, agent: str | None) -> str:
    """Return a class's documentation, with the attributes and methods that its STATEK-ACL allows `agent` to see.

    With `as_code`, it has the form of a class definition. Raises `DocstringParseError` if there is no docstring.
    """
    text = inspect.getdoc(kind)
    if not text:
        raise DocstringParseError(f"Class '{kind.__name__}' has no docstring")
    documented = next(base for base in kind.__mro__ if base.__doc__)
    if is_internal(documented):
        raise NotImplementedError(
            f"class {kind.__name__!r} needs a docstring of its own on the reference runtime"
        )
    sections = sections_of(text)
    summary = tool_variant(sections.summary)
    if not as_code:
        return f"{kind.__name__}\n    {summary}"
    head = f"class {kind.__name__}:"
    if brief:
        return _as_code(head, [summary])
    allowed = _access(sections.by_title.get("STATEK-ACL"), agent)
    lines = [sections.whole] if sections.whole else []
    tags = [
        line.strip().split(" - ", 1)[0].strip() for line in sections.by_title.get("Tags", ()) if line.strip()
    ]
    lines += ["", *_section("Tags:", [f"    {tag}" for tag in tags if tag])] if tags else []
    attributes = [item for item in _attributes(kind, sections) if allowed(item.name)]
    lines += ["", *_section("Attributes:", [item.line() for item in attributes])] if attributes else []
    methods = [method for method in _methods(kind) if allowed(method.__name__)]
    return "\n".join([_as_code(head, lines), *(_indented(method) for method in methods if _has_text(method))])


def _indented(method: Callable[..., Any]) -> str:
    text = function_text(method, brief=True, as_code=True)
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _has_text(method: Callable[..., Any]) -> bool:
    try:
        function_text(method, brief=True, as_code=True)
    except DocstringParseError:
        return False
    return True


def _methods(kind: type) -> list[Callable[..., Any]]:
    found = inspect.getmembers(kind, predicate=inspect.isfunction)
    return [method for name, method in found if not name.startswith("_") and not is_internal(method)]


def _attributes(kind: type, sections: Sections) -> list[Described]:
    """Return a class's attributes: fields, then properties, then attributes described only in the docstring.

    Descriptions in the docstring take precedence.
    """
    described = {item.name: item for item in sections.items("Attributes")}
    found: dict[str, Described] = {item.name: item for item in _fields(kind)}
    for item in _properties(kind):
        found.setdefault(item.name, item)
    return [
        *(described.get(name, item) for name, item in found.items()),
        *(i for n, i in described.items() if n not in found),
    ]


def _fields(kind: type) -> Iterator[Described]:
    if not dataclasses.is_dataclass(kind):
        return
    hints = type_hints(kind)
    for field in dataclasses.fields(kind):
        hint, doc = hints.get(field.name), field.metadata.get("doc")
        yield Described(field.name, _type_text(hint) if hint else None, tool_variant(doc) if doc else doc)


def _properties(kind: type) -> Iterator[Described]:
    seen: set[str] = set()
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if not isinstance(value, property) or value.fget is None:
                continue
            hints, text = type_hints(value.fget), inspect.getdoc(value.fget)
            returned = sections_of(text).returned() if text else None
            yield Described(name, _type_text(hints["return"]) if "return" in hints else None, returned)


def _access(rules: Sequence[str] | None, agent: str | None) -> Callable[[str], bool]:
    """Return a function that returns whether `agent` may see a name, based on the lines in a STATEK-ACL section.

    Lines have the forms `+name`, `-name`, `+prefix*` and `+name: Agent, ...`; the last matching line decides.
    """
    if rules is None:
        return lambda _: True
    read = [rule for line in rules if (rule := line.strip())[:1] in ("+", "-")]

    def allowed(name: str) -> bool:
        decision = False
        for rule in read:
            pattern, colon, scope = rule[1:].partition(":")
            agents = [role.strip() for role in scope.split(",") if role.strip()]
            if colon and agents and agent not in agents:
                continue
            wanted = pattern.strip()
            if name == wanted or (wanted.endswith("*") and name.startswith(wanted[:-1])):
                decision = rule[0] == "+"
        return decision

    return allowed


# -- the tools ----------------------------------------------------------------------------------------------------


def _documentation(what: Any, method_name: str | None, *, brief: bool) -> str:
    target = what if isinstance(what, type) or callable(what) else type(what)
    method = None if method_name is None else method_name.strip() or None
    if method is not None:
        if not isinstance(target, type):
            return without_addresses(f"Error: {target} is not a class")
        if not hasattr(target, method):
            return f"Error: {target.__name__} has no method '{method}'"
        target = getattr(target, method)
    if isinstance(target, type) and statek_documentation(target) is None:
        return class_text(target, brief=brief, as_code=not brief, agent=get_current_agent_name())
    return tool_text(target, brief=brief)


def tool_text(function: Callable[..., Any], *, brief: bool) -> str:
    """Return a tool's documentation as `brief` or `docstr` shows it; may raise `DocstringParseError`."""
    own = system_tool(function) or statek_documentation(function)
    if own is not None:
        return own.brief if brief else own.docstr
    return function_text(function, brief=brief, as_code=not brief)


def _print_documentation(what: Any, method_name: str | None, *, brief: bool) -> None:
    if isinstance(what, str):
        # The model passed the name of a nonexistent variable.
        print(f"NameError: name '{what}' is not defined")
        return
    try:
        text = _documentation(what, method_name, brief=brief)
    except Exception as error:  # noqa: BLE001  # errors of the user's classes during inspection
        text = f"{type(error).__name__}: {error}"
    print(text)


@tool(system=True)
def docstr(what: Any, method_name: str | None = None, **kwargs: Any) -> None:
    """Print the documentation of a tool, a class, an object's class or one of its methods."""
    _print_documentation(what, method_name, brief=False)


@tool(system=True)
def brief(what: Any, method_name: str | None = None, **kwargs: Any) -> None:
    """Print signature and summary of a tool, a class, an object's class or one of its methods."""
    _print_documentation(what, method_name, brief=True)


def docs_style(function: Any = None, *, brief_types: bool = False) -> Any:
    """Set how `brief` documents a function; with `brief_types`, parameter types are shown."""

    def decorate(marked: Any) -> Any:
        marked._docs_style = {"brief_types": brief_types}
        return marked

    return decorate if function is None else decorate(function)


for _tool in (docstr, brief):
    # With this annotation, a string from a model is resolved as a variable name.
    _function: Any = _tool
    _function.__wrapped__.__annotations__["what"] = type
