"""The attributes of STATEK's own stored objects that agent code can read (dbzero 0.7.0, restricted).

Agent code can read stored members and public properties that have a value, and can call public methods. This
package can read all attributes, even while agent code runs. `format_default_llm_repr` and similar functions
display an application's objects.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final, TypeVar

from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.access import (
    FULL,
    IN_METHOD,
    RESTRICTED,
    access,
    current_access,
    denied,
    missing,
    require_class,
)
from statek_sim.runtime.stored.storable_types import object_text
from statek_sim.sandbox.compile import FILENAME as AGENT_CODE
from statek_sim.sandbox.llm_repr import STORE_MEMBERS, format_print_arg, llm_members, llm_repr, llm_value
from statek_sim.sandbox.policy import RestrictedMethod

K = TypeVar("K", bound=type)

_TABLES: Final = tomllib.loads((files("statek_sim.shim") / "internal_attrs.toml").read_text("utf-8"))


def _names(table: str) -> Mapping[str, frozenset[str]]:
    return {kind: frozenset(names.split()) for kind, names in _TABLES[table].items()}


_METHODS: Final = _names("methods")
_PROPERTIES: Final = _names("properties")
HERE_ONLY: Final = _names("here_only")
NOT_COVERED: Final = _names("not_covered")
"""Attribute names, keyed by STATEK's class name."""
_ENUMERATED: Final = {"job_status": "status"}
"""Maps each member with an enum value to the property that returns the value."""


def dataclass_there(kind: K) -> K:
    """Decorate a class that is a dataclass in STATEK, so that agent code cannot compare or display its objects.

    Comparing a dataclass, or calling `repr` on it, reads `__class__`, which dbzero does not allow agent code to do.
    """
    given: Any = kind  # its methods are replaced
    compare, text = given.__eq__, given.__repr__

    def equal(self: object, other: object) -> Any:
        require_class()
        return compare(self, other)

    def shown(self: object) -> Any:
        require_class()
        return text(self)

    given.__eq__, given.__repr__, given.__str__ = equal, shown, object_text
    return kind


def is_read_by_agents() -> bool:
    """Return whether agent code is reading the attribute; must be called directly by `__getattribute__`."""
    return current_access() == RESTRICTED and sys._getframe(2).f_code.co_filename == AGENT_CODE


def read_by_agents(owner: Any, kind: type, name: str) -> Any:
    """Return an attribute of STATEK's class `kind` for agent code; raises dbzero's error if access is denied."""
    if name.startswith("__"):
        return object.__getattribute__(owner, name)
    with access(FULL):
        members = getattr(owner, STORE_MEMBERS)(lambda member: member == name)
    if name in members and name not in _ENUMERATED:
        return members[name]
    if name in _METHODS[kind.__name__]:
        return RestrictedMethod(_called_in_full(owner, name))
    property_name = _ENUMERATED.get(name, name)
    value = _read(owner, property_name) if property_name in _PROPERTIES[kind.__name__] else None
    if value is None:
        raise denied(name)
    return value


def _read(owner: Any, name: str) -> Any:
    with access(IN_METHOD):
        return getattr(owner, name)


def _called_in_full(owner: Any, name: str) -> Any:
    method = object.__getattribute__(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if isinstance(owner, Job):
            _check_usable(owner, name)
        with access(IN_METHOD):
            return method(*args, **kwargs)

    return call


def _check_usable(job: Any, method: str) -> None:
    reads = _TABLES["stops_at"].get(method)
    known = {"chat_style": job.chat_style, "perm_ctx": job.py_env.perm_ctx}
    if reads is not None and known.get(reads) is None:
        raise denied(reads)


_WAYS: Final = ("_get", "_got_by", "__getattribute__", "read_attribute")
_OURS: Final = ("statek_sim", "pytest_statek", "dataclasses", "inspect")


def check_reader(owner: object, name: str) -> None:
    """Raise AttributeError if an application reads the attribute `name`, which STATEK's class does not have.

    Must be called directly by the method or property that implements the attribute.
    """
    frame = sys._getframe(2)
    # Skip the frames of the store's attribute access.
    while frame.f_code.co_name.startswith(_WAYS) and frame.f_back is not None:
        frame = frame.f_back
    if not frame.f_globals.get("__name__", "").startswith(_OURS):
        raise missing(owner, name)


_OPTIONS: Final = ("hide", "expand", "show_only", "max_len", "repeated", "is_nested")
"""The display options. STATEK accepts and ignores all other keywords."""


def format_default_llm_repr(obj: Any, **kwargs: Any) -> str:
    """Return a value as agents see it, formatted with its `__llm_repr__`, its own `__str__`, or its members.

    `hide`, `show_only` and `expand` name members, `max_len` limits collections, and `is_nested` quotes text.
    Exceptions raised by the object's own methods propagate.
    """
    return llm_repr(
        obj, others={name: kwargs[name] for name in kwargs if name not in _OPTIONS}, **_known(kwargs)
    )


def format_llm_repr(value: Any, **kwargs: Any) -> str:
    """Format a value by its members, ignoring its own methods."""
    return llm_members(value, **_known(kwargs))


def format_value_repr(value: Any, is_nested: bool = True) -> str:
    """Format a value as a member of another value: text in quotes, collections by size, objects as `<Object>`."""
    return llm_value(value, quoted=is_nested)


def statek_print(
    *objects: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False
) -> None:
    """Print values as agents see them."""
    print(sep.join(format_print_arg(value) for value in objects), end=end, file=file, flush=flush)


def _known(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in _OPTIONS}
