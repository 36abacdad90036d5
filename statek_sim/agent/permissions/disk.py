"""The files of this machine, as `Files`."""

from __future__ import annotations

import os
import stat

from statek_sim.agent.permissions.paths import Entry


class Disk:
    """Knows what is at a path of this machine now; it may be something else a moment later (see `workspace`)."""

    def look(self, path: str) -> Entry | None:
        """Return what is at a path; what nobody may look at, or has too long a name, is nothing."""
        try:
            found = os.lstat(path)
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            try:
                return Entry(kind="link", target=os.readlink(path))
            except OSError:  # It is another thing by now.
                return Entry(kind="other")
        if stat.S_ISDIR(found.st_mode):
            return Entry(kind="folder")
        if stat.S_ISREG(found.st_mode):
            return Entry(kind="file", links=found.st_nlink)
        return Entry(kind="other")
