"""The import finder that replaces `statek` and `dbzero` with the shim; `covered_names.toml` lists the names.

Importing a missing name raises ImportError, with advice to run the tests on the real package.
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
    "the reference runtime does not support it; run these tests on the real package: "
    "pip install 'statek[dbzero]' and pytest --statek-backend=installed"
)


class NotCovered(ImportError):
    """Raised for a STATEK or dbzero feature that the reference runtime does not support."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: {ADVICE}", name=what.partition(" ")[0])


class ModuleNotCovered(ModuleNotFoundError):
    """Raised for a STATEK or dbzero module that the reference runtime does not support."""

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
"""Maps each shim module to its names, and each name to the `module:attribute` in this package that
implements it.
"""
OF_STATEK: Final = frozenset(_TABLES["texts"]["statek"].split())
"""Strings that STATEK itself stores before a job's first reply is executed."""


def elsewhere(module: str, name: str) -> list[str]:
    """Return the modules other than `module` that define the name."""
    return [other for other, names in MODULES.items() if name in names and other != module]


PACKAGES: Final = ("statek", "dbzero")
ON_DBZERO: Final = "dbzero_modelkit"
"""A pure Python package that imports dbzero and provides models; if installed, it works with the shim."""


class StandInModule(ModuleType):
    """A replacement for a STATEK or dbzero module; names are imported on first use.

    Reading a missing name raises ImportError.
    """

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
            f"cannot import {name!r} from {module!r}: in STATEK, it is in {', '.join(others)}", name=module
        )
    return NotCovered(f"{module}.{name}")


class StandIns(MetaPathFinder, Loader):
    """The shim's import finder and loader, active between `install` and `remove`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec for a shim module, or None for other packages.

        Raises `ModuleNotCovered` for an unknown `statek` or `dbzero` module.
        """
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
        """Return a `StandInModule`."""
        return StandInModule(spec.name, "Replaces the STATEK module with this name; see statek_sim.shim.")

    def exec_module(self, module: ModuleType) -> None:
        """Set `__version__` and `__all__` on the module `statek`; do nothing for other modules."""
        if module.__name__ == "statek":
            vars(module).update(
                __version__="1.4.2",
                __all__=sorted({*MODULES["statek"]} - {*_TABLES["not_listed"]["statek"].split()}),
            )

    def install(self) -> None:
        """Put the finder first, so that the shim hides installed packages with these names until `remove` is called.

        Raises `BadInput` if a real package has already been imported, because two copies in one process would
        not recognize each other's objects.
        """
        for name in PACKAGES:
            module = sys.modules.get(name)
            if module is not None and not isinstance(module, StandInModule):
                place = getattr(module, "__file__", None) or "somewhere"
                raise BadInput(
                    f"{name} was imported from {place} before it could be replaced; disable the pytest "
                    "plugin that imports it (`-p no:NAME`), or choose the installed backend"
                )
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Remove the finder and its modules; `import statek` then finds the installed package, if any."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in list(sys.modules.items()):
            if isinstance(module, StandInModule) or name.partition(".")[0] == ON_DBZERO:
                del sys.modules[name]


def shadowed() -> tuple[str, ...]:
    """Return the names and versions of the installed packages that the shim hides."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return tuple(found)
