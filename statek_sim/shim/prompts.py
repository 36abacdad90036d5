"""`statek.prompt_config` for the reference runtime: system prompts with sections, tools and prompt files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from statek_sim.runtime.agents import agent as runtime
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.execution.toolbox import own_tool
from statek_sim.runtime.jobs.post_processing import post_processors
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.tools.documentation import tool_text
from statek_sim.shim.difficulty import parse_task_difficulty
from statek_sim.shim.jobs import AppJobDef
from statek_sim.shim.memo import enum, memo
from statek_sim.shim.store import current_store
from statek_sim.values import unchanged

_LINE: Final = re.compile(
    r"^[ \t]*(?:-{3,}[ \t]*(.+?)[ \t]*-{3,}|\*{3,}[ \t]*(.+?)[ \t]*\*{3,}|#{2,6}[ \t]+(.+?)[ \t]*#*)[ \t]*$",
    re.MULTILINE,
)
"""Matches a line that is a section title."""
_BOX: Final = re.compile(
    r"^[ \t]*<([A-Za-z_][\w.-]*)((?:\s+[^<>]*?)?)\s*>(.*?)</\1>[ \t]*(?:\r?\n)?", re.DOTALL | re.MULTILINE
)
"""Matches a section in an XML element."""
_FOR: Final = re.compile(
    r"\b(?:target_difficulties|difficulty)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE
)
_IS_BRIEF: Final[Mapping[str, bool]] = {"tools": True, "brief_tools": True, "detailed_tools": False}
"""Maps each placeholder name to whether it shows the brief form of tool documentation."""


@dataclass
class PromptSectionData:
    """A section of a prompt; without `target_difficulties`, it is sent for all of them."""

    title: str
    contents: str
    target_difficulties: Any = None


@dataclass
class SystemPromptData:
    """A prompt that is not stored."""

    intro: str
    sections: list[PromptSectionData]


@memo
@dataclass(eq=False)
class PromptSection:
    """A section of a stored prompt."""

    title: str
    contents: str
    target_difficulties: Any = None


@memo
@dataclass(eq=False)
class SystemPrompt:
    """A stored prompt."""

    intro: str
    sections: Any = field(default_factory=list)


class PromptDef(NamedTuple):
    """The prompt and the metadata in a prompt file."""

    system: SystemPromptData
    metadata: dict[str, str]


# -- parsing ------------------------------------------------------------------------------------------------------


def parse_system_prompt(input: str) -> SystemPromptData:  # noqa: A002  # STATEK's own name
    """Split a prompt into its intro and its sections; raises ValueError for an unknown difficulty in an element."""
    intro: list[str] = []
    sections: list[PromptSectionData] = []
    is_open = False
    for text, found in _pieces(input):
        if is_open:
            sections[-1].contents = text.strip()
        elif not sections:
            intro.append(text)
        elif text.strip():
            sections[-1].contents = "\n".join(filter(None, (sections[-1].contents, text.strip())))
        if found is not None:
            is_open = found.re is _LINE
            sections.append(_titled(found) if is_open else _boxed(found))
    return SystemPromptData("".join(intro).strip(), sections)


def _pieces(text: str) -> Iterator[tuple[str, re.Match[str] | None]]:
    """Yield the text before each section with the section's match, then the remaining text with None."""
    place = 0
    while found := min(
        filter(None, (_LINE.search(text, place), _BOX.search(text, place))), key=re.Match.start, default=None
    ):
        yield text[place : found.start()], found
        place = found.end()
    yield text[place:], None


def _titled(found: re.Match[str]) -> PromptSectionData:
    title = next(filter(None, found.groups())).strip()
    levels, colon, rest = title.partition(":")
    try:
        return (
            PromptSectionData(rest.strip(), "", _difficulties(levels))
            if colon
            else PromptSectionData(title, "")
        )
    except ValueError:
        return PromptSectionData(title, "")


def _boxed(found: re.Match[str]) -> PromptSectionData:
    levels = _FOR.search(found[2])
    wanted = None if levels is None else _difficulties(levels[1] if levels[1] is not None else levels[2])
    return PromptSectionData(found[1], found[3].strip(), wanted)


def _difficulties(text: str) -> set[Any]:
    """Return the difficulties in a string such as `MH` or `medium, high`."""
    compact = text.strip()
    letters = bool(re.fullmatch("[LMHlmh]+", compact))
    return {parse_task_difficulty(part) for part in (compact if letters else _parts(compact))}


def _parts(text: str) -> Sequence[str]:
    parts = [part for part in re.split(r"[\s,|/]+", text) if part]
    return parts if len(parts) > 1 else [text]


def make_system_prompt(prompt: Any) -> SystemPrompt:
    """Return the stored prompt for a string or for parsed data."""
    if isinstance(prompt, SystemPrompt):
        return prompt
    data = parse_system_prompt(prompt) if isinstance(prompt, str) else prompt
    return SystemPrompt(data.intro, [PromptSection(*_fields(section)) for section in data.sections])


def _fields(section: Any) -> tuple[str, str, Any]:
    return section.title, section.contents, section.target_difficulties


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two prompts have the same intro and sections."""
    return _compared(one) == _compared(other)


def _compared(prompt: Any) -> object:
    return prompt.intro, [
        (title, contents, wanted and {*wanted}) for title, contents, wanted in map(_fields, prompt.sections)
    ]


# -- formatting ---------------------------------------------------------------------------------------------------


def prompt_text(
    prompt: SystemPrompt | None,
    difficulty: Any,
    names: Mapping[str, Any],
    tools: Iterable[Callable[..., Any]],
) -> str:
    """Return a prompt as sent for a difficulty, with tool documentation and the values in `names` filled in.

    Raises `DocstringParseError` if a placeholder names a tool with incomplete documentation.
    """
    if prompt is None:
        return ""
    shown = [tool for tool in tools if not getattr(tool, "tool_hidden", False)]
    text = format_system_prompt(
        prompt, difficulty, prompt_part_formatter=lambda part: _with_tools(part, shown)
    )
    values = dict(names)
    if "{shared_var_names}" in text:
        values["shared_var_names"] = ", ".join(values.get("shared_vars") or ())
    return text.format_map(values) if values else text


PromptStyle: Final = enum("PromptStyle", ["XML", "DASHED", "ASTERISK", "MARKDOWN"])


def format_system_prompt(
    prompt: Any,
    task_difficulty: Any,
    style: Any = PromptStyle.DASHED,
    section_formatter: Callable[[str], str] | None = None,
    prompt_part_formatter: Callable[[str], str] | None = None,
) -> str:
    """Return a prompt's intro and the sections for a difficulty, with the sections' titles in `style`.

    Raises ValueError for an unknown style, or a title that cannot be the name of an XML element.
    """
    in_section, in_part = section_formatter or unchanged, prompt_part_formatter or unchanged
    intro = in_part(prompt.intro).strip()
    parts = [intro] if intro else []
    for title, contents, wanted in map(_fields, prompt.sections):
        if wanted is None or task_difficulty in wanted:
            parts.append(_section(title.strip(), in_part(in_section(contents)).strip(), style))
    return "\n\n".join(parts)


def _section(title: str, contents: str, style: Any) -> str:
    if style == PromptStyle.XML:
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", title):
            raise ValueError(f"Invalid XML section title: {title!r}")
        edge = "\n" if "\n" in contents else ""
        return f"<{title}>{edge}{contents}{edge}</{title}>"
    if style == PromptStyle.DASHED:
        return f"--- {title} ---\n{contents}"
    if style == PromptStyle.ASTERISK:
        return f"*** {title} ***\n{contents}"
    if style == PromptStyle.MARKDOWN:
        return f"## {title}\n{contents}"
    raise ValueError(f"Unsupported prompt style: {style!r}")


def _with_tools(text: str, tools: Sequence[Callable[..., Any]]) -> str:
    for name, brief in _IS_BRIEF.items():
        if f"{{{name}}}" not in text:
            continue
        documentation = "\n\n".join(_tool_documentation(tool, brief=brief) for tool in tools)
        comment = re.compile(rf"^(\s*#\s*)\{{{name}\}}", re.MULTILINE)
        if comment.search(text):
            text = comment.sub("\n".join(f"# {line}" for line in documentation.split("\n")), text)
        else:
            text = text.replace(f"{{{name}}}", documentation)
    return text


def _tool_documentation(tool: Callable[..., Any], *, brief: bool) -> str:
    own = own_tool(tool, current_runtime().profile.system_tools)
    if own is None:
        return tool_text(tool, brief=brief)
    return own.brief if brief else own.docstr


# -- prompt files -------------------------------------------------------------------------------------------------


def parse_prompt_file(file_path: Path) -> PromptDef:
    """Read a prompt file; raises ValueError if it has no line `# System Prompt`."""
    lines = file_path.read_text(encoding="utf-8").split("\n")
    metadata: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if re.match(r"^#\s+System Prompt\s*$", line, re.IGNORECASE):
            return PromptDef(parse_system_prompt("\n".join(lines[number:]).strip()), metadata)
        if found := re.match(r"^#\s+(\w+):\s+(.+)$", line):
            metadata[found[1].upper()] = found[2].strip()
    raise ValueError(f"Prompt file '{file_path}' is missing the '# System Prompt' section.")


def load_prompt_files(prompt_files_dir: str) -> dict[str, PromptDef]:
    """Read the `ROLE.md` files in a folder; if the folder does not exist, return no prompts."""
    folder = Path(prompt_files_dir or "/nowhere")
    return {path.stem: parse_prompt_file(path) for path in folder.glob("*.md")} if folder.is_dir() else {}


def give_prompt(agent: Any, prompt: Any) -> None:
    """Replace an agent's system prompt and metadata with those of a `PromptDef` that are not empty."""
    if prompt.system:
        agent.update_system_prompt(prompt.system)
    if prompt.metadata:
        agent.update_metadata(prompt.metadata)


def update_prompt_config(prompt_defs: Mapping[str, PromptDef], agents: Iterable[Any] | None = None) -> None:
    """Give agents (by default, all) their roles' prompts, and their definitions the style and post-processors."""
    stored = current_store().newest_first()
    chosen: Iterable[Any] = (
        (one for one in stored if isinstance(one, runtime.Agent)) if agents is None else agents
    )
    for agent in chosen:
        found: Any = prompt_defs.get(agent.role)
        if found is None:
            continue
        give_prompt(agent, found)
        if description := (found.metadata or {}).get("DESCRIPTION"):
            agent.update_description(description)
        style = (found.metadata or {}).get("CHAT_STYLE")
        for definition in stored:
            if isinstance(definition, AppJobDef) and definition.agent is agent:
                definition.set_chat_style(ChatStyle[style.upper()] if style else None)
                definition.processors = post_processors(found.metadata or {})
