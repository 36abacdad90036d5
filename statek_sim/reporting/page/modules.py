"""JavaScript modules as one script: each module a function of its own, in the order of their imports.

A page of one file has no addresses that its modules could be imported from. The modules keep to a few forms, one per
line; anything else is refused rather than guessed at: `import { a, b as c } from "./NAME";` and before declarations
`export`, as in `export const a = ...`, `export function a() ...`, `export class A ...`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Final

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[\w./-]+)";?$', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export (?=(?:const|let|class|(?:async )?function\*?) ([A-Za-z_$][\w$]*))", re.MULTILINE
)
_LEFT: Final = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def joined_modules(entry: str, read: Callable[[str], str]) -> str:
    """Return the module `entry` and all it imports as one script; `read` returns a module's text by its path.

    ValueError for an import or export of a form that is not known, and for modules that import each other.
    """
    texts: dict[str, str] = {}
    _add(entry, read, texts, ())
    body = "\n".join(f'modules["{name}"] = (() => {{\n{text}\n}})();' for name, text in texts.items())
    return f'"use strict";\n(() => {{\nconst modules = {{}};\n{body}\n}})();\n'


def _add(name: str, read: Callable[[str], str], texts: dict[str, str], importers: tuple[str, ...]) -> None:
    """Put a module behind those that it imports."""
    if name in importers:
        raise ValueError(f"{name}: imports itself, through {' and '.join(importers)}")
    if name in texts:
        return
    text = read(name)
    for _, path in _IMPORT.findall(text):
        _add(_beside(name, path), read, texts, (*importers, name))
    texts[name] = _as_function(name, text)


def _as_function(name: str, text: str) -> str:
    """Return the inside of a function that returns what the module exports."""
    exported = _EXPORT.findall(text)
    text = _IMPORT.sub(lambda found: _taken(name, found[1], found[2]), text)
    text = _EXPORT.sub("", text)
    if left := _LEFT.search(text):
        raise ValueError(f"{name}: {left[0]!r}: expected one of the forms that can be joined")
    return f"{text}\nreturn {{ {', '.join(exported)} }};"


def _taken(name: str, names: str, path: str) -> str:
    """Return an import as a declaration."""
    parts = [part.strip().replace(" as ", ": ") for part in names.split(",") if part.strip()]
    return f'const {{ {", ".join(parts)} }} = modules["{_beside(name, path)}"];'


def _beside(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
