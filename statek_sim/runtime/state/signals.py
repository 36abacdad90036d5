"""Signals: how the outside world says that something a job may wait for has changed."""

from __future__ import annotations

from collections.abc import Callable


class Signal:
    """Something that can change. Whoever changes it calls `fire`; listeners are told in the order they came.

    Listening and firing cost the same however many jobs wait for other signals.
    """

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: dict[str, Callable[[str], None]] = {}

    def listen(self, key: str, listener: Callable[[str], None]) -> None:
        """Call `listener(key)` on every fire until `forget(key)`."""
        self._listeners[key] = listener

    def forget(self, key: str) -> None:
        """Stop telling `key`; unknown keys are ignored."""
        self._listeners.pop(key, None)

    def fire(self) -> None:
        """Tell every listener."""
        for key, listener in list(self._listeners.items()):
            listener(key)
