"""Calls of the corpus made under a permission policy, on files of this machine, judged by what came of them.

What was read, changed or deleted that must not be, also when a path was changed between the check and the use.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.agent.effects import ToolCall
from statek_sim.agent.option_names import PROTECTED
from statek_sim.agent.permissions.paths import folded
from statek_sim.agent.permissions.permissions import Permissions
from statek_sim.agent.permissions.policy import Policy, Rule
from statek_sim.agent.permissions.workspace import Disk, Workspace, file_tools

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


def played(make: MakeAdapter, call: Call) -> str | None:
    """Play one call in a folder of its own; return what is wrong, None when nothing is."""
    with tempfile.TemporaryDirectory(prefix="statek-fixture-") as folder:
        fixture = FixtureDir(Path(folder))
        fixture.make(call.setup)
        found: list[str | None] = []
        worker = threading.Thread(target=lambda: found.append(_judged(make, call, fixture)), daemon=True)
        worker.start()
        worker.join(_PATIENCE)
        if not worker.is_alive():
            return found[0] if found else "it raises what is no Exception"
        while worker.is_alive():
            fixture.unstick()
            worker.join(0.05)
        return "it hangs"


def _judged(make: MakeAdapter, call: Call, fixture: FixtureDir) -> str | None:
    adapter = make(fixture.root)
    fixture.watch()
    returned: object = None
    try:
        use = adapter.begin(call.tool, fixture.filled(call.arguments))
        if use is not None:
            fixture.make(call.swap)
            # What the swap did to the fixture is not the call's.
            fixture.watch()
            returned = use()
    except PermissionError:
        use = None
    except OSError as error:
        use, returned = None, str(error)
    except Exception as error:  # noqa: BLE001  # a user's policy
        return f"it raises {type(error).__name__}: {error}"
    harm = fixture.harm(returned if use is not None else None)
    if harm is not None:
        return harm
    if call.good:
        if use is None:
            return "it is refused, and is allowed"
        return None if fixture.done(call, returned) else "it is not made, and nobody says so"
    if use is not None and call.alone and call.tool not in ("read_file", "list_directory", "delete_file"):
        return "it is made, and no rule allows it"
    return None


SECRET: Final = "the-secret-outside"  # what must not be read
LISTED: Final = "kept-outside.txt"
"""A file that no call names: who shows it has listed the folder."""
WRITTEN: Final = "written by the call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the corpus; `alone`: it is about policies, and says nothing about containers."""

    name: str
    tool: str
    arguments: Mapping[str, Any]
    setup: Sequence[Sequence[str]] = ()
    swap: Sequence[Sequence[str]] = ()
    good: bool = False
    alone: bool = False


@cache
def calls() -> tuple[Call, ...]:
    """Return the corpus of calls, `calls.toml`."""
    text = Path(__file__).with_name("calls.toml").read_text(encoding="utf-8")
    return tuple(map(_call, tomllib.loads(text)["call"]))


def _call(fields: dict[str, Any]) -> Call:
    path = fields.pop("path", None)
    arguments = dict(fields.pop("arguments", {}))
    if path is not None:
        arguments["path"] = path
    if fields["tool"].lower() == "write_file":
        arguments["content"] = WRITTEN
    return Call(arguments=arguments, **fields)


class FixtureDir:
    """The folder `base`, filled; `root` in it is what calls may use."""

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.realpath(base))
        self.root = self.base / "root"
        for folder in ("root/src", "root/.git/hooks", "root-evil", "outside"):
            (self.base / folder).mkdir(parents=True)
        for file in ("root-evil/secret.txt", "outside/secret.txt"):
            (self.base / file).write_text(SECRET)
        (self.base / "outside" / LISTED).write_text("")
        for file in ("root/notes.txt", "root/src/main.py", "root/.git/config", "root/.git/hooks/pre-commit"):
            (self.base / file).write_text("harmless\n")
        self._before: dict[str, str] = {}

    def filled(self, value: Any) -> Any:
        """Return a value of the corpus with the names of places filled in."""
        if isinstance(value, str):
            names = {"{root}": self.root, "{outside}": self.base / "outside", "{secret}": SECRET}
            for name, put in names.items():
                value = value.replace(name, str(put))
            return value
        return (
            {key: self.filled(member) for key, member in value.items()}
            if isinstance(value, Mapping)
            else value
        )

    def make(self, steps: Sequence[Sequence[str]]) -> None:
        """Make what steps say, in the place of what is there."""
        for what, name, content in steps:
            place, put = self.base / name, str(self.filled(content))
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            match what:
                case "link":
                    place.symlink_to(put)
                case "hard":
                    place.hardlink_to(self.base / put)
                case "file":
                    place.write_text(put)
                case "folder":
                    place.mkdir()
                case "pipe":
                    os.mkfifo(place)
                case _:
                    raise ValueError(f"{what!r} is no step")

    def watch(self) -> None:
        """Remember how everything is that must not be touched."""
        self._before = dict(self._kept())

    def harm(self, returned: object) -> str | None:
        """Return what a call did since that it must not, judged by its result and by what is in the fixture now."""
        if not (self.root / "notes.txt").exists() and not (self.root / "src").exists():
            return "it deletes the root"
        after = dict(self._kept())
        changed = {
            path for path in self._before.keys() | after.keys() if self._before.get(path) != after.get(path)
        }
        if any(not path.startswith("root/") for path in changed):
            return "it changes what is outside"
        if changed:
            return "it changes what is protected"
        text = returned if isinstance(returned, str) else repr(returned)
        return "it reads what is outside" if SECRET in text or LISTED in text else None

    def done(self, call: Call, returned: object) -> bool:
        """Return whether a good call did what it is for."""
        place = self.root / str(self.filled(call.arguments["path"]))
        match call.tool:
            case "read_file":
                return place.read_text() in str(returned)
            case "write_file":
                return place.is_file() and place.read_text() == WRITTEN
            case "delete_file":
                return not place.exists()
            case _:
                return "notes.txt" in str(returned)

    def _kept(self) -> Iterator[tuple[str, str]]:
        """Yield what is outside of the root and what is protected in it, with its content."""
        for folder, _, names in os.walk(self.base):
            for name in names:
                path = os.path.join(folder, name)
                inside = os.path.relpath(path, self.base)
                parts = [folded(part) for part in inside.split("/")]
                if parts[0] != "root" or set(PROTECTED) & set(parts):
                    yield inside, Path(path).read_text() if os.path.isfile(path) else "?"

    def unstick(self) -> None:
        """Let go whoever waits at a pipe."""
        for pipe in self.base.rglob("pipe"):
            try:
                os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))
            except OSError:
                pass


class Hardened:
    """Our rules before a call, and a workspace that opens the files."""

    def __init__(self, root: Path) -> None:
        self._workspace = Workspace(root)
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
