"""What is kept beside a job's workspace: names of tools and agent code, for a step or for good, and how much data.

Each block has limits of its own; the data of many blocks add up, and are counted here.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, Final

from statek_sim.runtime.state.context import current, current_context
from statek_sim.runtime.state.futures import FutureError, FutureResult
from statek_sim.runtime.state.pyenv import PERMANENT, PyEnv
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.llm_repr import StoredCollection

_MOST_FRAMES: Final = 40


# -- names beside a job -------------------------------------------------------------------------------------------


def statek_ctx_set(**values: Any) -> None:
    """Put names beside the current job, for as long as it is current; without a context it is a RuntimeError."""
    context = current_context()
    if context is None:
        raise RuntimeError("Statek execution context not found")
    context.update(values)


def statek_ctx_get(*key_and_default: Any) -> Any:
    """Return what is beside the current job under a name, or the default; without one its lack is an error."""
    _one_or_two("statek_ctx_get", key_and_default)
    return _looked_up(current_context(), key_and_default, "Statek execution context not found")


def perm_ctx_set(**values: Any) -> None:
    """Keep names with the current job, over its steps; without a job it is a RuntimeError."""
    _permanent().update(values)


def perm_ctx_set_unique(key: str, value: Any) -> str:
    """Keep a value with the current job under `key`, or `key_1` and so on when that is taken; return the name."""
    kept = _permanent()
    taken = {*_names_around(inspect.currentframe()), *kept}
    name, number = key, 0
    while name in taken:
        number += 1
        name = f"{key}_{number}"
    kept[name] = value
    return name


def perm_ctx_get(*key_and_default: Any) -> Any:
    """Return what is kept with the current job under a name, or the default; without one its lack is an error."""
    _one_or_two("perm_ctx_get", key_and_default)
    job: Any = current("job")
    if job is None:
        return _looked_up(None, key_and_default, "Statek job context not found")
    kept = (job.py_env.local_state or {}).get(PERMANENT)
    return _looked_up(kept, key_and_default, f"{PERMANENT} not found in Statek job context")


def _one_or_two(name: str, arguments: tuple[Any, ...]) -> None:
    if not arguments or len(arguments) > 2:
        raise TypeError(f"{name} expected 1 or 2 arguments, got {len(arguments)}")


def _looked_up(names: Mapping[str, Any] | None, key_and_default: tuple[Any, ...], lack: str) -> Any:
    if names is not None:
        return names.get(*key_and_default) if len(key_and_default) == 2 else names[key_and_default[0]]
    if len(key_and_default) == 2:
        return key_and_default[1]
    raise RuntimeError(lack)


def _permanent() -> Any:
    job: Any = current("job")
    if job is None:
        raise RuntimeError("Statek job context not found")
    env = job.py_env
    if env.local_state is None:
        env.local_state = {}
    return env.local_state.setdefault(PERMANENT, {})


# -- variables ----------------------------------------------------------------------------------------------------


def find_locals(
    var_type: type | None = None,
    var_name: str | None = None,
    ext_scan: bool = True,
) -> Iterator[Any]:
    """Yield variables of the callers, agent code included, by type or by name; then those kept with the job."""
    job: Any = current("job")
    kept = getattr(getattr(job, "py_env", None), "perm_ctx", None) if ext_scan else None
    yield from matching(_names_around(inspect.currentframe()), var_type, var_name, kept)


def matching(
    names: Mapping[str, Any], var_type: type | None, var_name: str | None, kept: Mapping[str, Any] | None
) -> Iterator[Any]:
    """Yield the values that fit, futures by their values; one that is not ready is passed over, by name waited for."""
    if var_name is None:
        for value in {**(kept or {}), **names}.values():
            yield from _fitting(value, var_type, named=False)
    elif var_name in names:
        yield from _fitting(names[var_name], var_type, named=True)
    elif kept and var_name in kept:
        yield from _fitting(kept[var_name], var_type, named=True)


def _fitting(value: Any, wanted: type | None, *, named: bool) -> Iterator[Any]:
    if isinstance(value, FutureResult) and (named or wanted is not None):
        try:
            value = value.value
        except FutureError:
            if named:
                raise
            return
    if wanted is None or isinstance(value, wanted):
        yield value


def _names_around(frame: FrameType | None) -> dict[str, Any]:
    """Return the variables of the callers, inner ones last, and of the agent code that called a tool among them."""
    frames: list[FrameType] = []
    frame = None if frame is None else frame.f_back
    while frame is not None and len(frames) < _MOST_FRAMES:
        frames.append(frame)
        frame = frame.f_back
    names: dict[str, Any] = {}
    for one in reversed(frames):
        found = dict(one.f_locals)
        for holder in (found, found.get("kwargs")):
            given = holder.get("_local_context") if isinstance(holder, dict) else None
            if isinstance(given, dict):
                names.update(given)
        names.update(found)
    return names


STEPS_KEPT: Final = 4
"""A job may keep as much as four blocks may build."""

_OBJECT: Final = 56
_WIDE: Final = 4
_SEQUENCES: Final = (list, tuple, set, frozenset, deque, StoredCollection)

# What a job keeps is whatever its code has made.
Value = Any


def check_kept(env: PyEnv, budget: ExecutionBudget) -> None:
    """Stop the code of a job whose names hold too much, before it adds to it."""
    limit = STEPS_KEPT * budget.allocation
    if weight(env.local_state, limit) > limit:
        budget.stop(
            f"the job keeps more than {limit:,} bytes of data from turn to turn; the likely cause is a list or text "
            "that every turn makes longer"
        )


def weight(names: Mapping[str, Value], limit: int) -> int:
    """Return how many bytes the values of `names` hold, each counted once, or something above `limit`.

    Reckoned, not measured, so that it is the same everywhere.
    """
    total = 0
    met: set[int] = set()
    pending: list[Value] = list(names.values())
    while pending and total <= limit:
        value = pending.pop()
        if id(value) in met:
            continue
        met.add(id(value))
        total += _OBJECT + _own_bytes(value)
        pending += _inside(value)
    return total


def _own_bytes(value: Value) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else _WIDE * len(value)
    if isinstance(value, bytes):
        return len(value)
    if type(value) is int:
        return value.bit_length() >> 3
    if isinstance(value, dict):
        return 64 * len(value)
    return 8 * len(value) if isinstance(value, _SEQUENCES) else 0


def _inside(value: Value) -> Iterable[Value]:
    if isinstance(value, StoredCollection):
        # Those shown as a dict have the methods of one.
        stored: Value = value
        try:
            return [*stored, *stored.values()] if issubclass(value.shown_as, dict) else list(stored)
        except Exception:  # noqa: BLE001  # the code that reads it hears what the store has against it
            return ()
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, set):
        return list(set.__iter__(value))
    if isinstance(value, frozenset):
        return list(frozenset.__iter__(value))
    return value if isinstance(value, _SEQUENCES) else ()
