"""An MCP server without a transport: its tools, its faults, and the journal of its requests.

Client sessions share it. A journal in a file outlives the server.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from statek_sim.cassettes.redaction import without_secrets
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.mcp.fault import Faults, McpFault
from statek_sim.mcp.primitives import Prompts, Resources, prompts_by_name, resources_by_uri
from statek_sim.values import JSON

VERSION: Final = "1.0.0"


class McpServer:
    """Tools by name, in order; `listed` are those in a client's first list (None: all of them).

    `page` is the number of tools per page of `tools/list`; None: one page. `faults` are injected into its answers.
    `resources` are texts and bytes by URI, `prompts` functions that return a string or messages; both may be empty.
    """

    def __init__(
        self,
        tools: Iterable[ServedTool],
        *,
        name: str = "statek-sim",
        resources: Resources = (),
        prompts: Prompts = (),
        faults: Sequence[McpFault] = (),
        listed: Sequence[str] | None = None,
        page: int | None = None,
        instructions: str | None = None,
        journal: McpJournal | None = None,
    ) -> None:
        self.name = name
        self.instructions = instructions
        self.tools: dict[str, ServedTool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise BadInput(f"MCP server {name!r}: tool {tool.name!r} is listed twice")
            self.tools[tool.name] = tool
        self.resources = resources_by_uri(resources, f"MCP server {name!r}")
        self.prompts = prompts_by_name(prompts, f"MCP server {name!r}")
        if page is not None and page < 1:
            raise BadInput(f"MCP server {name!r}: page size is {page}, expected 1 or more")
        self.page = page
        self.faults = Faults(faults)
        self.faults.check_names(self.tools)
        self.journal = McpJournal() if journal is None else journal
        self._told: list[Callable[[], None]] = []
        self._listed = tuple(self.tools)
        if listed is not None:
            self._listed = self._known(listed)

    @property
    def listed(self) -> tuple[ServedTool, ...]:
        """The currently listed tools; only these can be called."""
        return tuple(self.tools[name] for name in self._listed)

    def list_only(self, names: Sequence[str]) -> None:
        """List these tools from now on, and notify every client."""
        self._listed = self._known(names)
        for tell in tuple(self._told):
            tell()

    def on_change(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` at every change of the list, until the returned function is called."""
        self._told.append(tell)
        return lambda: self._told.remove(tell)

    def _known(self, names: Sequence[str]) -> tuple[str, ...]:
        for name in names:
            if name not in self.tools:
                known = ", ".join(self.tools) or "none"
                hint = suggestion(name, self.tools)
                problem = f"MCP server {self.name!r} has no tool {name!r}; it has: {known}.{hint}"
                raise BadInput(problem.removesuffix("."))
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """Result of a call: blocks of content, and a structured value if the tool has an output schema."""

    content: tuple[Mapping[str, JSON], ...] = ()
    structured: Mapping[str, JSON] | None = None
    is_error: bool = False

    def as_json(self) -> dict[str, JSON]:
        """Return it as the `result` of a `tools/call`."""
        fields: dict[str, JSON] = {"content": [dict(block) for block in self.content]}
        if self.structured is not None:
            fields["structuredContent"] = dict(self.structured)
        if self.is_error:
            fields["isError"] = True
        return fields


def text_result(text: str, *, is_error: bool = False) -> CallResult:
    """Return a text as a result."""
    return CallResult(content=({"type": "text", "text": text},), is_error=is_error)


ServedCode = Callable[[Mapping[str, JSON]], Awaitable[CallResult]]
"""A tool's function: takes the arguments of a call."""


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """One tool of an MCP server. `input_schema` and `output_schema` are JSON Schema."""

    name: str
    run: ServedCode
    description: str = ""
    input_schema: Mapping[str, JSON] = field(default_factory=_object)
    output_schema: Mapping[str, JSON] | None = None

    def listed(self) -> dict[str, JSON]:
        """Return it as an entry of `tools/list`."""
        fields: dict[str, JSON] = {"name": self.name, "inputSchema": dict(self.input_schema)}
        if self.description:
            fields["description"] = self.description
        if self.output_schema is not None:
            fields["outputSchema"] = dict(self.output_schema)
        return fields


What = Literal["started", "request", "notification", "response", "fault", "cancelled", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpEntry:
    """One entry.

    `method` is the message's, `name` that of the tool, resource or prompt, `detail` the text of a fault or a refusal.
    """

    what: What
    session: str = ""
    method: str = ""
    name: str = ""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    detail: str = ""

    def line(self) -> str:
        """Return the request on one line, for people."""
        about = f" {self.name}({json.dumps(dict(self.arguments), ensure_ascii=False)})" if self.name else ""
        words = f"{self.what} {self.method}".strip() + about
        return f"{words}: {self.detail}" if self.detail else words


def counted(lines: Iterable[str]) -> Iterator[str]:
    """Yield the tools, and `tools/list`, requested in a journal; raises `ValueError` if it is not a journal."""
    for line in lines:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise ValueError("a line is not an object")
        if entry.get("what") == "request" and entry.get("method") in ("tools/call", "tools/list"):
            yield str(entry.get("name") or entry["method"])


class McpJournal:
    """The entries; `written` gets each at once as a line of JSON without secrets, before any answer."""

    def __init__(self, written: Callable[[str], None] | None = None) -> None:
        self._written = written
        self.entries: list[McpEntry] = []

    def add(self, entry: McpEntry) -> None:
        """Add an entry."""
        self.entries.append(entry)
        if self._written is not None:
            fields = {key: value for key, value in asdict(entry).items() if value}
            self._written(without_secrets(json.dumps(fields, ensure_ascii=False, default=dict)))

    @property
    def calls(self) -> list[tuple[str, dict[str, JSON]]]:
        """The tools that were called, with their arguments."""
        return [
            (entry.name, dict(entry.arguments))
            for entry in self.entries
            if entry.method == "tools/call" and entry.what == "request"
        ]

    @property
    def methods(self) -> list[str]:
        """The methods of requests and notifications, in order."""
        return [entry.method for entry in self.entries if entry.what in ("request", "notification")]
