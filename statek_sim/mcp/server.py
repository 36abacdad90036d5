"""An MCP server without a transport: its tools, its faults, its journal. Sessions of clients share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.mcp.fault import Faults, McpFault
from statek_sim.mcp.journal import McpJournal
from statek_sim.mcp.tool import ServedTool

VERSION: Final = "1.0.0"


class McpServer:
    """Tools by name, in order; `listed` are those that a client is shown at first (None: all of them).

    `page` is how many tools a page of `tools/list` has; None: all in one. `faults` go wrong on command.
    """

    def __init__(
        self,
        tools: Iterable[ServedTool],
        *,
        name: str = "statek-sim",
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
                raise BadInput(f"MCP server {name!r}: tool {tool.name!r} is there twice")
            self.tools[tool.name] = tool
        if page is not None and page < 1:
            raise BadInput(f"MCP server {name!r}: a page has {page} tools, expected 1 or more")
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
        """The tools that clients are shown now; only these can be called."""
        return tuple(self.tools[name] for name in self._listed)

    def list_only(self, names: Sequence[str]) -> None:
        """Show these tools from now on, and tell every client that the list changed."""
        self._listed = self._known(names)
        for tell in tuple(self._told):
            tell()

    def on_change(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` at every change of the list, until what is returned is called."""
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
