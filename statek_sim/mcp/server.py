"""An MCP server without a transport: its tools, its faults, and the journal of its requests.

All client sessions share the server. A journal written to a file survives a server restart.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from statek_sim.cassettes.redaction import without_secrets
from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput
from statek_sim.mcp.fault import Faults, McpFault
from statek_sim.mcp.primitives import Prompts, Resources, prompts_by_name, resources_by_uri
from statek_sim.values import JSON

VERSION: Final = "1.0.0"


class McpServer:
    """An MCP server for tests. `listed` names the tools that are listed at first; None means all.

    `page` is the number of tools per page of `tools/list`; None puts all tools on one page. `faults` are injected into
    answers. `resources` maps URIs to str or bytes. `prompts` are functions, each of which returns a string or a list of
    messages. Raises `BadInput` for duplicate or unknown names.
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
        journal: McpJournal | None = None,
    ) -> None:
        self.name = name
        self.tools: dict[str, ServedTool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise BadInput(f"MCP server {name!r}: tool {tool.name!r} is listed twice")
            self.tools[tool.name] = tool
        self.resources = resources_by_uri(resources, f"MCP server {name!r}")
        self.prompts = prompts_by_name(prompts, f"MCP server {name!r}")
        if page is not None and page < 1:
            raise BadInput(f"MCP server {name!r}: the page size must be 1 or more, got {page}")
        self.page = page
        self.faults = Faults(faults)
        self.faults.check_names(self.tools)
        self.journal = McpJournal() if journal is None else journal
        self._listeners: list[Callable[[], None]] = []
        self._listed = tuple(self.tools)
        if listed is not None:
            self._listed = self._known(listed)

    @property
    def listed(self) -> tuple[ServedTool, ...]:
        """The tools that clients can currently list and call."""
        return tuple(self.tools[name] for name in self._listed)

    def list_only(self, names: Sequence[str]) -> None:
        """List only these tools from now on, and notify every client; raises `BadInput` for an unknown tool."""
        self._listed = self._known(names)
        for notify in tuple(self._listeners):
            notify()

    def on_change(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` whenever the listed tools change, until the returned function is called."""
        self._listeners.append(notify)
        return lambda: self._listeners.remove(notify)

    def _known(self, names: Sequence[str]) -> tuple[str, ...]:
        for name in names:
            if name not in self.tools:
                known = ", ".join(self.tools) or "none"
                problem = f"MCP server {self.name!r} has no tool {name!r}; it has: {known}"
                raise BadInput(with_suggestion(problem, name, self.tools))
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """A tool result's content blocks, and whether the tool failed."""

    content: tuple[Mapping[str, JSON], ...]
    is_error: bool = False

    def as_json(self) -> dict[str, JSON]:
        """Return the `result` of the answer to `tools/call`."""
        fields: dict[str, JSON] = {"content": [dict(block) for block in self.content]}
        if self.is_error:
            fields["isError"] = True
        return fields


def text_result(text: str, *, is_error: bool = False) -> CallResult:
    """Return a tool result with a single text block."""
    return CallResult(content=({"type": "text", "text": text},), is_error=is_error)


ServedCode = Callable[[Mapping[str, JSON]], Awaitable[CallResult]]
"""A tool's function, which takes a call's arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool on an MCP server. `input_schema` is its arguments' JSON Schema."""

    name: str
    run: ServedCode
    description: str = ""
    input_schema: Mapping[str, JSON]

    def listed(self) -> dict[str, JSON]:
        """Return the tool's entry in `tools/list`."""
        fields: dict[str, JSON] = {"name": self.name, "inputSchema": dict(self.input_schema)}
        if self.description:
            fields["description"] = self.description
        return fields


What = Literal["started", "request", "notification", "response", "fault", "cancelled", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpEntry:
    """A journal entry about a message or a server event.

    `method` is the JSON-RPC method (or the transport), `name` is the tool, resource URI or prompt, and `detail` is a
    fault, a refusal or a process id.
    """

    what: What
    session: str = ""
    method: str = ""
    name: str = ""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    detail: str = ""

    def line(self) -> str:
        """Return the entry as one line, for reports."""
        about = f" {self.name}({json.dumps(dict(self.arguments), ensure_ascii=False)})" if self.name else ""
        words = f"{self.what} {self.method}".strip() + about
        return f"{words}: {self.detail}" if self.detail else words


def counted(lines: Iterable[str]) -> Iterator[str]:
    """Yield, in order, the tool name for each call in a journal file, and `tools/list` for each listing.

    Raises `ValueError` if a line is not a journal entry.
    """
    for line in lines:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise ValueError("a line is not an object")
        if entry.get("what") == "request" and entry.get("method") in ("tools/call", "tools/list"):
            yield str(entry.get("name") or entry["method"])


class McpJournal:
    """A server's journal. `written` is called with each entry, a line of JSON without secrets, before the answer."""

    def __init__(self, written: Callable[[str], None] | None = None) -> None:
        self._written = written
        self.entries: list[McpEntry] = []

    def add(self, entry: McpEntry) -> None:
        """Append an entry, and pass it to `written`."""
        self.entries.append(entry)
        if self._written is not None:
            fields = {key: value for key, value in asdict(entry).items() if value}
            self._written(without_secrets(json.dumps(fields, ensure_ascii=False, default=dict)))

    @property
    def calls(self) -> list[tuple[str, dict[str, JSON]]]:
        """Each tool call's name and arguments, in order."""
        return [
            (entry.name, dict(entry.arguments))
            for entry in self.entries
            if entry.method == "tools/call" and entry.what == "request"
        ]

    @property
    def methods(self) -> list[str]:
        """The JSON-RPC methods of all requests and notifications, in order."""
        return [entry.method for entry in self.entries if entry.what in ("request", "notification")]
