"""Permissions: which calls, paths, commands and hosts an agent may use (docs/permissions.md).

`Policy` contains the rules, `Permissions` decides calls by them, `PermissionGate` asks people, `Workspace` opens files
safely.
"""

from statek_sim.agent.permissions.permissions import PermissionGate, Permissions
from statek_sim.agent.permissions.policy import Decision, Policy, Rule
from statek_sim.agent.permissions.terminal import TerminalPerson
from statek_sim.agent.permissions.workspace import Disk, Outside, Workspace, file_tools

__all__ = [
    "Decision",
    "Disk",
    "Outside",
    "PermissionGate",
    "Permissions",
    "Policy",
    "Rule",
    "TerminalPerson",
    "Workspace",
    "file_tools",
]
