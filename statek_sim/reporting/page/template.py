"""The page's file: the template beside this module, filled with data and scripts, without any other file.

`page.html.j2` escapes its inputs, except inside `script` and `style` elements, where text that would end the element is
refused. Its Content-Security-Policy allows only these scripts and styles, by hash.

JavaScript modules become one script: each module a function, in the order of their imports, since a single-file page
has no addresses to import from. The modules use only a few forms, one per line; anything else is refused rather than
guessed at: `import { a, b as c } from "./NAME";` and before declarations `export`, as in `export const a = ...`,
`export function a() ...`, `export class A ...`.
"""

from __future__ import annotations

import base64
import hashlib
import lzma
import posixpath
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from statek_sim.reporting.page.data import PageData

if TYPE_CHECKING:
    from jinja2 import Template

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[\w./-]+)";?$', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export (?=(?:const|let|class|(?:async )?function\*?) ([A-Za-z_$][\w$]*))", re.MULTILINE
)
_LEFT: Final = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def joined_modules(entry: str, read: Callable[[str], str]) -> str:
    """Return the module `entry` and all its imports as one script; `read` returns a module's text by its path.

    ValueError for an unsupported form of import or export, and for circular imports.
    """
    texts: dict[str, str] = {}
    _add(entry, read, texts, ())
    body = "\n".join(f'modules["{name}"] = (() => {{\n{text}\n}})();' for name, text in texts.items())
    return f'"use strict";\n(() => {{\nconst modules = {{}};\n{body}\n}})();\n'


def _add(name: str, read: Callable[[str], str], texts: dict[str, str], importers: tuple[str, ...]) -> None:
    """Add a module after those that it imports."""
    if name in importers:
        raise ValueError(f"{name}: imports itself, through {' and '.join(importers)}")
    if name in texts:
        return
    text = read(name)
    for _, path in _IMPORT.findall(text):
        _add(_beside(name, path), read, texts, (*importers, name))
    texts[name] = _as_function(name, text)


def _as_function(name: str, text: str) -> str:
    """Return the body of a function that returns the module's exports."""
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


_ENDS_ELEMENT: Final = re.compile(r"</(?:script|style)|<!--", re.IGNORECASE)


def render(page: PageData) -> str:
    """Return the whole page as one self-contained file. Equal data gives equal text."""
    return _template().render(
        page=page,
        title=_readable(page.title),
        style=page_file("view/page.css"),
        scripts=(page_file("charts.js.xz"), joined_modules(page.view, page_file)),
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # only where a page is written

    environment = Environment(
        loader=PackageLoader("statek_sim.reporting", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(inside=_inside, source=_source)
    return environment.get_template("page.html.j2")


@cache
def page_file(name: str) -> str:
    """Return a file of this folder as text, decompressed if needed."""
    content = (resources.files("statek_sim.reporting.page") / name).read_bytes()
    return (lzma.decompress(content) if name.endswith(".xz") else content).decode("utf-8")


def _inside(text: str) -> str:
    """Return the text of a `script` or `style` element; ValueError if it would end the element."""
    if found := _ENDS_ELEMENT.search(text):
        raise ValueError(f"{found[0]!r} would end the element that holds it, or begin a comment in it")
    return text


def _source(text: str) -> str:
    """Return the hash of a script or style for a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _readable(text: str) -> str:
    """Return `text` without lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
