"""The permission enforcer of document 004 §8, defects included: what `check_permission_policy` finds is in the docs.

Its print and blocking `input` are replaced by the loop's question to a person; everything else is the document's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.effects import ToolCall
from statek_sim.agent.permissions.paths import Files, Unclear, resolved
from statek_sim.agent.permissions.policy import Policy, Rule

_WRITES: Final = frozenset(("write_file", "edit_file", "delete_file", "run_shell"))
_READS: Final = frozenset(("read_file", "list_directory"))
_TALKS: Final = frozenset(("http_request", "web_search", "fetch_url"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPermissions:
    """Folders that may be read and written, one switch for the network, and tools a person is asked about first."""

    allowed_read_dirs: Sequence[str] = ()
    allowed_write_dirs: Sequence[str] = ()
    network_allowed: bool = False
    require_approval_for: frozenset[str] = frozenset()

    def reason(self, call: ToolCall, files: Files, folder: str) -> str | None:
        """Return why a call is refused, None when it is allowed: every call of a tool it does not know.

        Raises what `Path(...).resolve()` raises: TypeError for what is no text, ValueError for a NUL, RuntimeError for
        a loop of links.
        """
        if call.name in _WRITES:
            path = _path(call.arguments, files, folder)
            if not _inside(path, self.allowed_write_dirs):
                return f"Write denied: '{path}' is outside allowed write directories."
        if call.name in _READS:
            path = _path(call.arguments, files, folder)
            if not _inside(path, (*self.allowed_read_dirs, *self.allowed_write_dirs)):
                return f"Read denied: '{path}' is outside allowed directories."
        if call.name in _TALKS and not self.network_allowed:
            return "Network access is disabled in this sandbox."
        return None


def as_document(policy: Policy) -> DocumentPermissions:
    """Return what of a policy the document's settings can say: folders, a switch, names of tools."""
    return DocumentPermissions(
        allowed_read_dirs=[_folder(rule, policy) for rule in policy.allow if rule.kind == "read"],
        allowed_write_dirs=[_folder(rule, policy) for rule in policy.allow if rule.kind == "write"],
        network_allowed=any(rule.kind == "host" for rule in policy.allow),
        require_approval_for=frozenset(rule.pattern for rule in policy.ask if rule.kind == "tool"),
    )


def _folder(rule: Rule, policy: Policy) -> str:
    path = rule.pattern.removesuffix("**").rstrip("/")
    whole = path if rule.pattern.startswith("/") else f"{policy.root.rstrip('/')}/{path}"
    return whole.rstrip("/") or "/"


def _path(arguments: Mapping[str, object], files: Files, folder: str) -> str:
    path = arguments.get("path", ".")
    if not isinstance(path, str):
        raise TypeError(f"expected str, bytes or os.PathLike object, not {type(path).__name__}")
    if "\0" in path:
        raise ValueError("embedded null byte")
    try:
        return resolved(path or ".", folder, files, visible=False)
    except Unclear as unclear:
        raise RuntimeError(f"Symlink loop from {path!r}") from unclear


def _inside(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
