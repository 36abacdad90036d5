"""What has to be true of a folder of this machine before a program may write in it, and after it did."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from statek_sim.agent.containers.program import NOBODY, Mount
from statek_sim.errors import ContainerRefused


def check_writable(mount: Mount) -> None:
    """Raise `ContainerRefused` for a folder that cannot be written in, or where that would write elsewhere too."""
    if not mount.path.is_dir():
        raise ContainerRefused(f"{mount.path}: is no folder, so nothing can be written in it")
    if os.geteuid() == 0 and not _made_by_nobody(mount.path):
        raise ContainerRefused(
            f"{mount.path}: the program runs as uid {NOBODY}, which may not write there; chown {NOBODY} it"
        )
    link = next((name for name in mount.protected if (mount.path / name).is_symlink()), None)
    if link is not None:
        raise ContainerRefused(
            f"{mount.path / link}: is a link, which cannot be protected; expected a folder"
        )
    if not mount.hard_links and (found := linked_elsewhere(mount.path)) is not None:
        raise ContainerRefused(
            f"{found}: has another name outside of the writable folder, so writing it writes there too; "
            "remove it, or allow hard_links"
        )


def _made_by_nobody(folder: Path) -> bool:
    """Return whether nobody (uid 65534) may make files in a folder."""
    found = folder.stat()
    if found.st_uid == NOBODY:
        return bool(found.st_mode & stat.S_IWUSR)
    if found.st_gid == NOBODY:
        return bool(found.st_mode & stat.S_IWGRP)
    return bool(found.st_mode & stat.S_IWOTH)


def linked_elsewhere(folder: Path) -> Path | None:
    """Return a file in a folder that has another name outside of it, None when there is none."""
    names: Counter[tuple[int, int]] = Counter()
    files: dict[tuple[int, int], tuple[int, str]] = {}
    for entry in _files(folder):
        found = entry.stat(follow_symlinks=False)
        if found.st_nlink > 1:
            key = found.st_dev, found.st_ino
            names[key] += 1
            files[key] = found.st_nlink, entry.path
    outside = sorted(path for key, (links, path) in files.items() if links > names[key])
    return Path(outside[0]) if outside else None


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    folders = [str(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry


@contextmanager
def kept_from_being_made(mount: Mount) -> Iterator[None]:
    """Hold the protected places that are not there by empty folders, which are gone again afterwards."""
    made = []
    for name in mount.protected:
        place = mount.path / name
        if not os.path.lexists(place):
            place.mkdir()
            made.append(place)
    try:
        yield
    finally:
        for place in made:
            try:
                place.rmdir()
            except OSError:  # Somebody outside put something into it, and then it is theirs.
                pass
