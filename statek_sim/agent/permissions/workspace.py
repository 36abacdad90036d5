"""A folder in which tools can read and write files, without access to any other files.

A path may lead elsewhere by the time it is used, even if a rule has checked it. So a file is first opened in a way that
cannot leave the folder, then checked, and only then read or written.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from statek_sim.agent.effects import ToolFunction
from statek_sim.agent.option_names import PROTECTED, Access
from statek_sim.agent.permissions.paths import Entry, ScriptedFiles, Unclear, protected_name, resolved
from statek_sim.agent.tools.tool import Tool, tool_of_schema
from statek_sim.values import JSON


class Disk:
    """Looks up paths on this machine's disk. An entry may change after the lookup (see `Workspace`)."""

    def look(self, path: str) -> Entry | None:
        """Return the entry at a path, or None if the entry is unreadable or its name is too long."""
        try:
            found = os.lstat(path)
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            try:
                return Entry(kind="link", target=os.readlink(path))
            except OSError:  # It has been replaced in the meantime.
                return Entry(kind="other")
        if stat.S_ISDIR(found.st_mode):
            return Entry(kind="folder")
        if stat.S_ISREG(found.st_mode):
            return Entry(kind="file", links=found.st_nlink)
        return Entry(kind="other")


def open_beneath(folder: int, path: str, flags: int, mode: int = 0o666) -> int:
    """Return a descriptor for a path below an open folder.

    Raises `OSError` if the path leaves the folder or goes through a link. Each part is opened relative to the previous
    one, so that concurrent changes cannot redirect it.
    """
    flags |= os.O_CLOEXEC | os.O_NOCTTY
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        return os.open(parts[-1] if parts else ".", flags | os.O_NOFOLLOW, mode, dir_fd=here)
    finally:
        os.close(here)


_MIB: Final = 1024 * 1024
_CLOSED: Final = -1


class Outside(PermissionError):
    """Raised if a workspace does not open a path; the model sees the message."""


class Workspace:
    """An open folder. `protected` names are read-only; at most `size` bytes of a file are read.

    Links are never followed, because one may have replaced a file since the call was allowed.
    """

    def __init__(
        self,
        root: Path,
        *,
        protected: tuple[str, ...] = PROTECTED,
        size: int = _MIB,
    ) -> None:
        self._root = os.path.realpath(root)
        self._protected = protected
        self._size = size
        self._folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder; later operations raise an error. Closing twice is harmless."""
        # The descriptor number may be reused: forget it, so that nothing is opened in or closed for another folder.
        number, self._folder = self._folder, _CLOSED
        if number != _CLOSED:
            os.close(number)

    @property
    def root(self) -> str:
        """The folder's path, with links resolved."""
        return self._root

    # -- what tools do ---------------------------------------------------------------------------------------------

    def read(self, path: str) -> str:
        """Return a file's text.

        Raises `Outside` if the path is not a file in the folder, or the file has more than one name, and `OSError` for
        other errors.
        """
        number = self._open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            self._is_file(number, path)
            text = os.read(number, self._size + 1)
        finally:
            os.close(number)
        if len(text) > self._size:
            raise Outside(f"{path!r}: larger than {self._size} bytes")
        return text.decode(errors="replace")

    def write(self, path: str, text: str) -> None:
        """Write text to a file, creating it if needed."""
        self._may_write(path)
        try:
            left = memoryview(text.encode())
        except UnicodeEncodeError:
            raise Outside(f"{path!r}: the text contains half of a surrogate pair") from None
        number = self._open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK)
        try:
            self._is_file(number, path)
            # Truncated only now, because O_TRUNC would empty a file before it is checked.
            os.ftruncate(number, 0)
            while left:
                left = left[os.write(number, left) :]
        finally:
            os.close(number)

    def delete(self, path: str) -> None:
        """Delete a file, an empty folder, or a link itself."""
        name = self._may_write(path)
        parent = self._open(os.path.dirname(name) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            last = os.path.basename(name)
            found = os.stat(last, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                os.rmdir(last, dir_fd=parent)
            else:
                os.unlink(last, dir_fd=parent)
        finally:
            os.close(parent)

    def list(self, path: str = ".") -> list[str]:
        """Return the sorted names in a folder; subfolders end in a slash."""
        number = self._open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(number) as entries:
                return sorted(
                    f"{one.name}/" if one.is_dir(follow_symlinks=False) else one.name for one in entries
                )
        finally:
            os.close(number)

    # -- how they are held -----------------------------------------------------------------------------------------

    def _open(self, path: str, flags: int) -> int:
        name = self._relative(path)
        if self._folder == _CLOSED:
            raise Outside(f"{path!r}: the workspace is closed")
        try:
            return open_beneath(self._folder, name, flags)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
                raise Outside(f"{path!r}: leads outside the workspace, or through a link") from None
            raise

    def _relative(self, path: object) -> str:
        if not isinstance(path, str):
            raise Outside(f"{path!r} is not a path")
        try:
            resolved(path, "/", ScriptedFiles({}))
        except Unclear as unclear:
            raise Outside(f"{path!r}: {unclear}") from None
        if not path.startswith("/"):
            return path
        inside = os.path.relpath(path, self._root)
        if inside == ".." or inside.startswith("../"):
            raise Outside(f"{path!r}: outside the workspace")
        return inside

    def _may_write(self, path: str) -> str:
        """Return the path from the folder, without `..`; raises `Outside` for the folder itself and protected paths."""
        name = os.path.normpath(self._relative(path))
        if name in {".", ".."} or name.startswith("../"):
            raise Outside(f"{path!r}: the workspace itself, or outside it")
        if (found := protected_name(name, self._protected)) is not None:
            raise Outside(f"{path!r}: {found} is protected")
        return name

    def _is_file(self, number: int, path: str) -> None:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise Outside(f"{path!r}: not a file")
        if found.st_nlink > 1:
            raise Outside(f"{path!r}: the file has {found.st_nlink} names, and the others may be anywhere")


def file_tools(workspace: Workspace) -> list[Tool]:
    """Return a workspace's `read_file`, `write_file`, `delete_file` and `list_directory` tools."""
    path: JSON = {"type": "string", "description": "Path in the workspace."}
    content: JSON = {"type": "string", "description": "Everything that the file is to have."}

    def write_file(path: str, content: str) -> str:
        workspace.write(path, content)
        return f"wrote {len(content.encode())} bytes"

    def delete_file(path: str) -> str:
        workspace.delete(path)
        return "deleted"

    def tool(name: str, about: str, run: ToolFunction, access: Access, **more: JSON) -> Tool:
        properties = {"path": path, **more}
        parameters: dict[str, JSON] = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
        }
        return tool_of_schema(name, about, parameters, run, access={"path": access})

    return [
        tool("read_file", "Read a text file.", workspace.read, "read"),
        tool("write_file", "Write a text file.", write_file, "write", content=content),
        tool("delete_file", "Delete a file or an empty folder.", delete_file, "write"),
        tool("list_directory", "List the names in a folder.", workspace.list, "read"),
    ]
