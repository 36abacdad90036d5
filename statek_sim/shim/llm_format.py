"""`format_default_llm_repr` and its kin: how an application shows its own objects to agents."""

from __future__ import annotations

from typing import Any, Final

from statek_sim.sandbox.llm_repr import format_print_arg, llm_members, llm_repr, llm_value

_OPTIONS: Final = ("hide", "expand", "show_only", "max_len", "repeated", "is_nested")
"""What is said about one value. STATEK takes any other keyword too, and makes nothing of it."""


def format_default_llm_repr(obj: Any, **kwargs: Any) -> str:
    """Return a value as agents see it: by its `__llm_repr__`, a `__str__` of its own, or its members.

    `hide`, `show_only` and `expand` name members, `max_len` bounds collections, `is_nested` quotes text. What the
    object's own methods raise is the caller's.
    """
    return llm_repr(obj, others=_others(kwargs), **_known(kwargs))


def format_llm_repr(value: Any, **kwargs: Any) -> str:
    """Return a value by its members, whatever its own methods would say."""
    return llm_members(value, **{"is_nested": True, **_known(kwargs)})


def format_value_repr(value: Any, is_nested: bool = True) -> str:
    """Return a value as the member of another: text in quotes, collections by size, objects as `<Object>`."""
    return llm_value(value, quoted=is_nested)


def statek_print(
    *objects: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False
) -> None:
    """Print values the way agents see them."""
    print(sep.join(format_print_arg(value) for value in objects), end=end, file=file, flush=flush)


def _known(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in _OPTIONS}


def _others(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _OPTIONS}
