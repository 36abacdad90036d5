"""What an MCP server was asked, in order; a file keeps it beyond the server's own death."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from statek_sim.cassettes.safe_text import without_secrets
from statek_sim.values import JSON

What = Literal["started", "request", "notification", "response", "fault", "cancelled", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One entry. `method` is the message's, `name` the tool's, `detail` what a fault or a refusal says."""

    what: What
    session: str = ""
    method: str = ""
    name: str = ""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    detail: str = ""

    def line(self) -> str:
        """Return it as one line for people."""
        about = f" {self.name}({json.dumps(dict(self.arguments), ensure_ascii=False)})" if self.name else ""
        words = f"{self.what} {self.method}".strip() + about
        return f"{words}: {self.detail}" if self.detail else words


def counted(lines: Iterable[str]) -> Iterator[str]:
    """Yield the tools, and `tools/list`, that a journal says were asked for; `ValueError` for what is none."""
    for line in lines:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise ValueError("a line is no object")
        if entry.get("what") == "request" and entry.get("method") in ("tools/call", "tools/list"):
            yield str(entry.get("name") or entry["method"])


class McpJournal:
    """The entries; `written` is given each as a line of JSON at once, before anything is answered, without secrets."""

    def __init__(self, written: Callable[[str], None] | None = None) -> None:
        self._written = written
        self.entries: list[Asked] = []

    def add(self, entry: Asked) -> None:
        """Keep an entry."""
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
