"""Fast construction of values that are created a few times per turn.

A frozen dataclass sets each of its fields by `object.__setattr__`, which first looks the field up by name. Setting its
slot takes half as long, and a turn creates twenty such values.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def quick(cls: type[T]) -> type[T]:
    """Return a frozen dataclass with slots whose `__init__` sets the slots directly.

    Raises `TypeError` for a class with bases, a `__post_init__`, or fields that are not parameters, where the behaviour
    could differ.
    """
    named: Any = cls
    every = fields(named)
    plain = cls.__bases__ == (object,) and "__slots__" in vars(cls) and not hasattr(cls, "__post_init__")
    if not plain or not all(each.init for each in every):
        raise TypeError(f"{cls.__name__}: expected a dataclass with slots whose fields are all parameters")
    slow = named.__init__
    defaults = {name: parameter.default for name, parameter in inspect.signature(slow).parameters.items()}
    known: dict[str, object] = {}
    lines = []
    for member in every:
        value = member.name
        if member.default_factory is not MISSING:
            known |= {
                f"_make_{member.name}": member.default_factory,
                f"_left_out_{member.name}": defaults[member.name],
            }
            value = f"_make_{member.name}() if {member.name} is _left_out_{member.name} else {member.name}"
        known[f"_set_{member.name}"] = vars(cls)[member.name].__set__
        lines.append(f"    _set_{member.name}(self, {value})")
    anywhere = [member.name for member in every if not member.kw_only]
    by_name = [member.name for member in every if member.kw_only]
    header = f"def __init__({', '.join(['self', *anywhere, *(['*', *by_name] if by_name else ())])}):"
    exec("\n".join([header, *lines]), known)  # like `dataclass`, with the same names
    made: Any = known["__init__"]
    made.__defaults__, made.__kwdefaults__ = slow.__defaults__, slow.__kwdefaults__
    made.__annotations__, made.__qualname__ = slow.__annotations__, slow.__qualname__
    made.__module__ = cls.__module__
    named.__init__ = made
    return cls
