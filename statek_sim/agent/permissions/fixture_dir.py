"""A folder to play calls in: a root that may be used, what is beside it, and whether anything there was touched."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from statek_sim.agent.permissions.paths import folded
from statek_sim.agent.permissions.policy import PROTECTED

SECRET: Final = "the-secret-of-the-yard"  # what must not be read
LISTED: Final = "kept-outside.txt"
"""A file that no call names: who shows it has listed the folder."""
WRITTEN: Final = "written by the call"


class Harm(StrEnum):
    """What a call can do that it must not."""

    READS = "it reads what is outside"
    WRITES = "it changes what is outside"
    PROTECTED = "it changes what is protected"
    ROOT = "it deletes the root"


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
    text = files(__package__).joinpath("calls.toml").read_text(encoding="utf-8")
    return tuple(map(_call, tomllib.loads(text)["call"]))


def _call(fields: dict[str, Any]) -> Call:
    path = fields.pop("path", None)
    arguments = dict(fields.pop("arguments", {}))
    if path is not None:
        arguments["path"] = path
    if fields["tool"].lower() == "write_file":
        arguments["content"] = WRITTEN
    return Call(arguments=arguments, **fields)


class Yard:
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

    def harm(self, returned: object) -> Harm | None:
        """Return what a call did since that it must not, judged by its result and by what is in the yard now."""
        if not (self.root / "notes.txt").exists() and not (self.root / "src").exists():
            return Harm.ROOT
        after = dict(self._kept())
        changed = {
            path for path in self._before.keys() | after.keys() if self._before.get(path) != after.get(path)
        }
        if any(not path.startswith("root/") for path in changed):
            return Harm.WRITES
        if changed:
            return Harm.PROTECTED
        text = returned if isinstance(returned, str) else repr(returned)
        return Harm.READS if SECRET in text or LISTED in text else None

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
