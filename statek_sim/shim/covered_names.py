"""The import finder that serves the stand-in modules; which names they have, `covered_names.toml` says.

The finder is put where `import` looks for `statek` and `dbzero`, and taken away again. What the stand-ins do not have
is one error.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from types import ModuleType
from typing import Any, Final

from statek_sim.errors import BadInput

ADVICE: Final = (
    "the reference runtime does not cover it; run these tests on the real package: "
    "pip install 'statek[dbzero]' and pytest --statek-backend=installed"
)


class NotCovered(ImportError):
    """Something of STATEK or dbzero that the reference runtime lacks."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: {ADVICE}", name=what.partition(" ")[0])


class ModuleNotCovered(ModuleNotFoundError):
    """A whole module that the reference runtime lacks."""

    def __init__(self, module: str) -> None:
        super().__init__(f"{module}: {ADVICE}", name=module)


_TABLES: Final = tomllib.loads((files("statek_sim.shim") / "covered_names.toml").read_text("utf-8"))
_HOMES: Final[Mapping[str, str]] = {
    name: f"{module}:{name}" for module, names in _TABLES["defined"].items() for name in names.split()
}

MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    **{module: {name: _HOMES[name] for name in names.split()} for module, names in _TABLES["statek"].items()},
    "dbzero": _TABLES["dbzero"],
}
"""Name of module -> name -> `module:attribute` it stands for."""
OF_STATEK: Final = frozenset(_TABLES["texts"]["statek"].split())
"""Texts that STATEK itself has put into the store."""


def elsewhere(module: str, name: str) -> list[str]:
    """Return the modules that have a name which `module` lacks."""
    return [other for other, names in MODULES.items() if name in names and other != module]


PACKAGES: Final = ("statek", "dbzero")
ON_DBZERO: Final = "dbzero_modelkit"
"""A package of models that is written in Python on dbzero: as installed it works on the stand-in too."""


class StandInModule(ModuleType):
    """A module whose names are looked up when they are first used; one that it lacks is an ImportError."""

    def __getattr__(self, name: str) -> Any:
        own = vars(self)["__name__"]
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        if f"{own}.{name}" in MODULES:
            return import_module(f"{own}.{name}")
        home = MODULES[own].get(name)
        if home is None:
            raise _missing(own, name)
        module, _, attribute = home.partition(":")
        found = getattr(import_module(module), attribute)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *MODULES[vars(self)["__name__"]]})


def _missing(module: str, name: str) -> ImportError:
    others = elsewhere(module, name)
    if others:
        return ImportError(
            f"cannot import {name!r} from {module!r}: STATEK has it in {', '.join(others)}", name=module
        )
    return NotCovered(f"{module}.{name}")


class StandIns(MetaPathFinder, Loader):
    """Finds the stand-in modules. `installed` and `removed` bound its life."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in; another module of these packages is an error that names it."""
        if fullname == ON_DBZERO and PathFinder.find_spec(fullname, path) is None:
            raise ModuleNotFoundError(
                f"{ON_DBZERO} is not installed: pip install dbzero-modelkit (it works on the reference runtime, and "
                "without dbzero)",
                name=fullname,
            )
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        if fullname not in MODULES:
            raise ModuleNotCovered(fullname)
        is_package = any(other.startswith(f"{fullname}.") for other in MODULES)
        return ModuleSpec(
            fullname, self, origin="the reference runtime of pytest-statek", is_package=is_package
        )

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the module."""
        return StandInModule(spec.name, "Stands in for STATEK's module of this name: see statek_sim.shim.")

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is, but for what `statek` says of itself: its names come when they are used."""
        if module.__name__ == "statek":
            vars(module).update(
                __version__="1.4.2",
                __all__=sorted({*MODULES["statek"]} - {*_TABLES["not_listed"]["statek"].split()}),
            )

    def install(self) -> None:
        """Put the stand-ins first; what is installed under these names is not seen until `remove`.

        The real package must not have been imported before: two of them in one process would not know each other.
        """
        for name in PACKAGES:
            module = sys.modules.get(name)
            if module is not None and not isinstance(module, StandInModule):
                place = getattr(module, "__file__", None) or "somewhere"
                raise BadInput(
                    f"{name} was imported from {place} before its stand-in could take its place; run without what "
                    "imports it that early (a plugin of pytest, or `-p`), or choose the installed backend"
                )
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Take the stand-ins away: from now on `import statek` finds what is installed, if anything."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in list(sys.modules.items()):
            if isinstance(module, StandInModule) or name.partition(".")[0] == ON_DBZERO:
                del sys.modules[name]


def shadowed() -> tuple[str, ...]:
    """Return what is installed and not seen while the stand-ins are there, with versions."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return tuple(found)
