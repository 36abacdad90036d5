"""Permissions: which calls, paths, commands and hosts an agent may use (docs/permissions.md).

A `Policy` contains the rules, and `Permissions` applies them to calls. `PermissionGate` asks a person where necessary.
`Workspace` opens files safely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.permissions.permissions import PermissionGate as PermissionGate
    from statek_sim.agent.permissions.permissions import Permissions as Permissions
    from statek_sim.agent.permissions.policy import Decision as Decision
    from statek_sim.agent.permissions.policy import Policy as Policy
    from statek_sim.agent.permissions.policy import Rule as Rule
    from statek_sim.agent.permissions.terminal import TerminalPerson as TerminalPerson
    from statek_sim.agent.permissions.workspace import Disk as Disk
    from statek_sim.agent.permissions.workspace import Outside as Outside
    from statek_sim.agent.permissions.workspace import Workspace as Workspace
    from statek_sim.agent.permissions.workspace import file_tools as file_tools

__all__, __getattr__, __dir__ = lazy_exports(__name__)
