"""What has to be true of a folder of this machine before a program may write in it, and after it did."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

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
    link = next((place for place in protected_places(mount) if place.is_symlink()), None)
    if link is not None:
        raise ContainerRefused(f"{link}: is a link, which cannot be protected; expected a folder")
    try:
        found = linked_elsewhere(mount.path)
    except OSError as error:
        # What we cannot look into could grow without our seeing it.
        raise ContainerRefused(f"{error.filename}: cannot be looked into: {error.strerror}") from error
    if not mount.hard_links and found is not None:
        raise ContainerRefused(
            f"{found}: has another name outside of the writable folder, so writing it writes there too; "
            "remove it, or allow hard_links"
        )


def protected_places(mount: Mount) -> list[Path]:
    """Return what is protected in a folder, at any depth and in any case of its letters: `vendor/.GIT` too."""
    names = {name.casefold() for name in mount.protected}
    found, folders = [], [mount.path]
    while folders:
        for entry in _entries(folders.pop()):
            if entry.name.casefold() in names:
                found.append(Path(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
    return sorted(found)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:  # Another program of the folder has removed it.
        return []
    except OSError as error:
        raise ContainerRefused(f"{error.filename}: cannot be looked into: {error.strerror}") from error


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


_HELD: Final[Counter[Path]] = Counter()
_LOCK: Final = threading.Lock()
"""Programs of one folder may run at once: what holds a place stays until the last of them has ended."""


@contextmanager
def kept_from_being_made(mount: Mount) -> Iterator[None]:
    """Hold the protected places that are not there by empty folders, which are gone again afterwards.

    Deeper in the folder nothing can be held. Raises `ContainerRefused` for a protected place that was made there; it is
    removed, because what is in it would run outside of the container.
    """
    held = list(_hold(mount))
    before = set(protected_places(mount))
    try:
        yield
    finally:
        made = [place for place in protected_places(mount) if place not in before]
        for place in made:
            _remove(place)
        with _LOCK:
            for place in held:
                _HELD[place] -= 1
                if not _HELD[place]:
                    del _HELD[place]
                    _let_go(place)
    if made:
        raise ContainerRefused(
            f"{made[0]}: was made by the program and is removed: what is in it would run outside of the container"
        )


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def _hold(mount: Mount) -> Iterator[Path]:
    with _LOCK:
        for name in mount.protected:
            place = mount.path / name
            if not os.path.lexists(place):
                place.mkdir()
            elif place not in _HELD:
                continue
            _HELD[place] += 1
            yield place


def _let_go(place: Path) -> None:
    try:
        place.rmdir()
    except OSError:  # Somebody outside put something into it, and then it is theirs.
        pass
