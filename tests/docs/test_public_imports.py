"""What users import is short and flat: 20 everyday names, and beside them one public module per subject."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import statek_sim
from tests.docs.page import DOCS
from tests.tables import table_test
from tools.reference import PUBLIC

ROOT: Final = DOCS.parent
PACKAGE: Final = ROOT / "statek_sim"


def read_by_users() -> Iterator[Path]:
    """Yield the pages, the examples and the files that `statek-sim init` writes."""
    yield from (page for page in sorted(DOCS.glob("*.md")) if page.name != "python-api.md")
    yield ROOT / "README.md"
    for folder in (ROOT / "examples", PACKAGE / "cli" / "starter"):
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")


READ_BY_USERS: Final = [path.relative_to(ROOT).as_posix() for path in read_by_users()]


def imported(text: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of each `from statek_sim... import name` in a page or a program."""
    for module, names in re.findall(r"from (statek_sim[\w.]*) import (\([^)]*\)|[\w, ]+)", text):
        yield from ((module, name) for name in re.findall(r"(\w+)(?: as \w+)?", names))


def deep(text: str) -> list[str]:
    """Return what a text names that is deeper than `statek_sim.<subject>.<name>`, or not public there."""
    found = [f"{module}.{name}" for module, name in imported(text)]
    # A program that is started by its path is no import.
    found += re.findall(r"(?<!from )(?<!-m )(?<!-m\n)\b(statek_sim(?:[.:]\w+)+)(?! import)", text)
    return sorted({name for name in found if not is_public(*name.replace(":", ".").split("."))})


def is_public(package: str, *path: str) -> bool:
    match path:
        case [name] if name in statek_sim.__all__:
            return True
        case [subject]:
            return (PACKAGE / subject).is_dir() or (PACKAGE / f"{subject}.py").is_file()
        case [subject, name]:
            module = importlib.import_module(f"{package}.{subject}")
            # A module without a list of its own, such as `errors`, is public as a whole.
            return name in getattr(module, "__all__", vars(module)) or (subject, name) == ("spans", "names")
        case _:
            return False


def public_modules() -> list[ModuleType]:
    return [statek_sim, *(importlib.import_module(f"statek_sim.{name}") for name in PUBLIC)]


def test_the_front_door_has_at_most_twenty_names() -> None:
    assert 10 < len(statek_sim.__all__) <= 20


@table_test("path", READ_BY_USERS)
def test_no_page_and_no_example_imports_deeper_than_a_subject(path: str) -> None:
    assert deep((ROOT / path).read_text("utf-8")) == []


def test_a_deep_import_is_seen() -> None:
    assert deep("from statek_sim.server.fault import Reset") == ["statek_sim.server.fault.Reset"]
    assert deep("from statek_sim.server import (\n    Reset,\n    running,\n)") == [
        "statek_sim.server.running"
    ]
    assert deep("`statek_sim.agent.effects:Ask`") == ["statek_sim.agent.effects:Ask"]


def test_a_name_has_one_public_place() -> None:
    names = [name for name in statek_sim.__all__ for module in PUBLIC if name in listed(module)]
    assert names == []


def listed(name: str) -> list[str]:
    names: list[str] = importlib.import_module(f"statek_sim.{name}").__all__
    return names


def test_every_public_name_has_a_docstring() -> None:
    missing = [
        f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if name not in NEEDS_MORE and is_described(getattr(module, name)) is False
    ]
    assert missing == []


NEEDS_MORE: Final = ("ScriptedClient",)
"""Names whose modules need a package that is not installed here."""


def is_described(value: object) -> bool | None:
    """Return whether it has a docstring of its own; None for constants and aliases of types, which cannot."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return None
    doc = value.__doc__ or ""
    return bool(doc) and not doc.startswith(f"{getattr(value, '__name__', '')}(")


@table_test("name", PUBLIC)
def test_what_is_loaded_at_its_first_use_is_listed_as_types_see_it(name: str) -> None:
    module = importlib.import_module(f"statek_sim.{name}")
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    seen = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("statek_sim.")
        for alias in node.names
    }
    assert seen - {"lazy_exports"} == set(module.__all__)


@table_test("name", PUBLIC)
def test_no_submodule_can_take_the_place_of_a_name(name: str) -> None:
    folder = PACKAGE / name
    submodules = {path.stem for path in folder.iterdir()} if folder.is_dir() else set()
    assert submodules & set(listed(name)) == set()
