"""Policies under the checker: our own, and two that people write. Examples of an adapter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from statek_sim.agent.effects import ToolCall
from statek_sim.agent.permissions.contract import Use
from statek_sim.agent.permissions.disk import Disk
from statek_sim.agent.permissions.permissions import Permissions
from statek_sim.agent.permissions.policy import Policy, Rule
from statek_sim.agent.permissions.workspace import Workspace, file_tools


class Hardened:
    """Our rules before a call, and a workspace that opens the files."""

    def __init__(self, root: Path, *, kernel: bool = True) -> None:
        self._workspace = Workspace(root, kernel=kernel)
        tools = {tool.name: tool for tool in file_tools(self._workspace)}
        policy = Policy(root=str(root), allow=[Rule("read", "**"), Rule("write", "**")])
        self._permissions = Permissions(policy, tools.get, Disk())
        self._tools = tools

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> Use | None:
        """Return what makes a call that the policy allows."""
        decision = self._permissions.decide(ToolCall("1", tool, arguments))
        if decision.effect != "allow":
            return None
        return partial(self._tools[tool].run, **arguments)


class Plain:
    """Tools as most people write them, which open the path that they are given."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def use(self, tool: str, arguments: Mapping[str, Any]) -> object:
        """Make a call of a tool that there is."""
        path = os.path.join(self.root, arguments.get("path", "."))
        match tool:
            case "read_file":
                return Path(path).read_text()
            case "write_file":
                return Path(path).write_text(arguments["content"])
            case "list_directory":
                return os.listdir(path)
            case "delete_file" if os.path.isdir(path):
                shutil.rmtree(path)
            case "delete_file":
                os.unlink(path)
        return None


class PrefixCheck(Plain):
    """A check that many write first: the path begins as the root does."""

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> Use | None:
        """Return what makes a call whose path, without `..`, begins with the root's."""
        path = os.path.normpath(os.path.join(self.root, arguments["path"]))
        return partial(self.use, tool, arguments) if path.startswith(str(self.root)) else None


class RealpathThenOpen(Plain):
    """The check that comes next: links are followed, parts are compared, and then the path is opened once more."""

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> Use | None:
        """Return what makes a call whose path is below the root as it is now."""
        path = os.path.realpath(os.path.join(self.root, arguments["path"]))
        below = os.path.commonpath([path, self.root]) == str(self.root)
        return partial(self.use, tool, arguments) if below else None
