"""Names that tools and agent code keep beside a job, for a step or for good, and the search for variables."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final

from statek_sim.runtime.state.context import current, current_context
from statek_sim.runtime.state.futures import FutureError, FutureResult
from statek_sim.runtime.state.pyenv import PERMANENT

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
