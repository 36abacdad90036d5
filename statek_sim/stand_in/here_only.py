"""Attributes that objects have here and not in STATEK: the runtime reads them, applications must not."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from statek_sim.runtime.state.access import missing

HERE_ONLY: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(names.split())
    for kind, names in {
        "Agent": "chat_style metadata prompt warmup",
        "Job": (
            "chat_style counters done_signal history host id inbox llm_calls remark remarked sent shared_names "
            "steps stop_reason tool_via"
        ),
    }.items()
}
"""Class -> names that STATEK's class of that name lacks."""

_WAYS: Final = ("_get", "_got_by", "__getattribute__", "read_attribute")
_OURS: Final = ("statek_sim", "pytest_statek", "dataclasses", "inspect")


def check_reader(owner: object, name: str) -> None:
    """Raise AttributeError when it is the application that reads `name` of an object.

    To be called by the method or property that stands for the attribute.
    """
    frame = sys._getframe(2)
    # The store's way to attributes is between the reader and the attribute.
    while frame.f_code.co_name.startswith(_WAYS) and frame.f_back is not None:
        frame = frame.f_back
    if not frame.f_globals.get("__name__", "").startswith(_OURS):
        raise missing(owner, name)
