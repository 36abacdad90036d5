"""A public checker that every permission policy passes, ours or a user's, through a small adapter.

    def test_my_policy_lets_nothing_out() -> None:
        check_permission_policy(MyAdapter)

Every call of a corpus is checked and made on files of this machine, and judged by what came of it: what was read,
changed or deleted that must not be, also when a path was changed between the check and the use.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.agent.permissions.fixture_dir import Call, Yard, calls
from statek_sim.errors import ContractViolation

_PATIENCE: Final = 3.0
"""Seconds after which a call hangs."""

Use = Callable[[], object]
"""Makes a call that was allowed, and returns its result."""


class PermissionAdapter(Protocol):
    """A policy and the tools under it, for one root: reading and writing below it is allowed, and nothing else.

    Its tools are `read_file` and `list_directory` (path), `write_file` (path, content) and `delete_file` (path).
    """

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> Use | None:
        """Check a call, and return what makes it; None, or a `PermissionError`, when it is refused.

        What makes it may raise an `OSError`, which refuses it too.
        """


MakeAdapter = Callable[[Path], PermissionAdapter]
"""Returns a fresh adapter for a root."""


def check_permission_policy(make: MakeAdapter) -> int:
    """Play every call of the corpus; return how many, or raise `ContractViolation` for the first wrong one."""
    for call in calls():
        wrong = played(make, call)
        if wrong is not None:
            raise ContractViolation(f"{call.name}: {call.tool}({_shown(call)}): {wrong}")
    return len(calls())


def permission_findings(make: MakeAdapter) -> dict[str, str]:
    """Return what is wrong, by the name of the call that shows it."""
    found = {call.name: played(make, call) for call in calls()}
    return {name: wrong for name, wrong in found.items() if wrong is not None}


def _shown(call: Call) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in call.arguments.items())


def played(make: MakeAdapter, call: Call) -> str | None:
    """Play one call in a folder of its own; return what is wrong, None when nothing is."""
    with tempfile.TemporaryDirectory(prefix="statek-yard-") as folder:
        yard = Yard(Path(folder))
        yard.make(call.setup)
        found: list[str | None] = []
        worker = threading.Thread(target=lambda: found.append(_judged(make, call, yard)), daemon=True)
        worker.start()
        worker.join(_PATIENCE)
        if not worker.is_alive():
            return found[0] if found else "it raises what is no Exception"
        while worker.is_alive():
            yard.unstick()
            worker.join(0.05)
        return "it hangs"


def _judged(make: MakeAdapter, call: Call, yard: Yard) -> str | None:
    adapter = make(yard.root)
    yard.watch()
    returned: object = None
    try:
        use = adapter.begin(call.tool, yard.filled(call.arguments))
        if use is not None:
            yard.make(call.swap)
            # What the swap did to the yard is not the call's.
            yard.watch()
            returned = use()
    except PermissionError:
        use = None
    except OSError as error:
        use, returned = None, str(error)
    except Exception as error:  # noqa: BLE001  # a user's policy
        return f"it raises {type(error).__name__}: {error}"
    harm = yard.harm(returned if use is not None else None)
    if harm is not None:
        return harm.value
    if call.good:
        if use is None:
            return "it is refused, and is allowed"
        return None if yard.done(call, returned) else "it is not made, and nobody says so"
    if use is not None and call.alone and call.tool not in ("read_file", "list_directory", "delete_file"):
        return "it is made, and no rule allows it"
    return None
