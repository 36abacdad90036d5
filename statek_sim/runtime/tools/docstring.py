"""Tool docstrings: the summary and the parameter descriptions that STATEK sends to the model."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_HEADERS: Final = frozenset(
    {
        *("Args", "Arguments", "Attributes", "Returns", "Return", "Raises", "Raise"),
        *("Example", "Examples", "Note", "Notes", "Tags", "STATEK-ACL"),
    }
)
_PARAMETER: Final = re.compile(r"\s{4,}(?P<name>\w+)\s*(?:\([^)]+\)\s*)?:\s*(?P<text>.*)")
_CONTINUATION_INDENT: Final = 8

_VARIANTS: Final = "VARIANTS/"
_VARIANT: Final = re.compile(r"/([A-Za-z0-9]{0,8}):")
_WANTED_VARIANT: Final = "tool"

_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class ToolDocstring:
    """What a tool's docstring says: `summary`, and one description per documented parameter."""

    summary: str
    parameters: Mapping[str, str]


def read_tool_docstring(function: Callable[..., object]) -> ToolDocstring:
    """Return what STATEK takes from the Google-style docstring of `function`.

    The summary is the first paragraph on one line. When a parameter (even a private one) is missing under
    `Args:`, STATEK uses the first line alone and no parameter descriptions at all.
    """
    text = inspect.getdoc(function)
    if not text:
        return ToolDocstring("", {})
    lines = text.split("\n")
    described = dict(_described_parameters(_args_section(lines)))
    if not own_parameters(function) <= described.keys():
        return ToolDocstring(lines[0].strip(), {})
    return ToolDocstring(
        tool_variant(_first_paragraph(lines)),
        {name: tool_variant(description) for name, description in described.items()},
    )


def tool_variant(text: str) -> str:
    """Return the `tool` part of `VARIANTS/:default text/tool:tool text`, else its default part.

    A text that does not start with `VARIANTS/` is returned as it is.
    """
    body = text.lstrip()
    if not body.startswith(_VARIANTS):
        return text
    _, *pieces = _VARIANT.split(body.removeprefix(_VARIANTS[:-1]))
    if not pieces:
        return text
    variants = {name.lower(): variant for name, variant in zip(pieces[::2], pieces[1::2], strict=True)}
    return variants.get(_WANTED_VARIANT, variants.get("", ""))


def _first_paragraph(lines: Sequence[str]) -> str:
    """Return the lines up to the first blank line or section header, as one line."""
    paragraph: list[str] = []
    for line in lines:
        content = line.strip()
        if not content or header_of(content) is not None:
            break
        paragraph.append(content)
    return " ".join(paragraph)


def header_of(content: str) -> str | None:
    """Return the section that a stripped line opens, or None."""
    name = content.rstrip(":")
    return name if name != content and name in _HEADERS else None


def _args_section(lines: Sequence[str]) -> list[str]:
    """Return the lines of the last `Args:` section. `Arguments:` is a section, but not this one."""
    section: list[str] = []
    inside = False
    for line in lines:
        header = header_of(line.strip())
        if header is None:
            if inside:
                section.append(line)
            continue
        inside = header == "Args"
        if inside:
            section = []
    return section


def _described_parameters(section: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield `(name, description)`: entries are indented by 4 or more, continuation lines by 8 or more."""
    name: str | None = None
    texts: list[str] = []
    for line in section:
        content = line.strip()
        if not content:
            continue
        if entry := _PARAMETER.fullmatch(line):
            if name is not None:
                yield name, " ".join(texts)
            name, texts = entry["name"], [entry["text"].strip()] if entry["text"].strip() else []
        elif name is not None and len(line) - len(line.lstrip()) >= _CONTINUATION_INDENT:
            texts.append(content)
    if name is not None:
        yield name, " ".join(texts)


def own_parameters(function: Callable[..., object]) -> set[str]:
    """Return the parameters that a complete `Args:` section must describe."""
    ignored = {"self", "cls"}
    if getattr(function, "__is_subtask__", False):
        ignored.add("id")
    parameters = inspect.signature(function).parameters
    return {name for name, it in parameters.items() if name not in ignored and it.kind not in _VARIADIC}
