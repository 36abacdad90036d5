"""The faults that an MCP server can inject, and the requests they affect."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput

Kind = Literal[
    "slow",  # the answer is sent after VALUE seconds
    "silent",  # no answer is sent
    "dies",  # the server exits after VALUE seconds, without an answer
    "changes",  # from now on only the tools VALUE (a,b) are listed; the client is notified before the answer
    "malformed",  # the answer is JSON-RPC, but its result has the wrong format
    "no-json",  # the answer is a line that is not JSON
    "wrong-id",  # the answer has the id of a request that was never sent
    "huge",  # the answer is a text of VALUE bytes
    "fails",  # the answer is a tool error (`isError`) with the text VALUE
    "refuses",  # the answer is a JSON-RPC error with the message VALUE
    "loops",  # every page of `tools/list` announces another page
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

LIST: Final = "tools/list"
_ONLY_CALLS: Final = ("changes", "fails", "huge")
_SECONDS: Final = ("slow", "dies")
_WRITTEN: Final = re.compile(
    r"(?P<kind>[a-z-]+)(?::(?P<on>[^@=]+))?(?:@(?P<nth>\d+))?(?:=(?P<value>.*))?", re.DOTALL
)
_HUGE: Final = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class McpFault:
    """A fault in calls to the tool `on`, in listings if `on` is `tools/list`, or in every call if it is None.

    With `nth`, only the nth of these requests (counted from 1) is affected. The meaning of `value` depends on the kind:
    seconds for `slow` and `dies`, bytes for `huge`, tool names (`a,b`) for `changes`, and a message for `fails` and
    `refuses`.
    """

    kind: Kind
    on: str | None = None
    nth: int | None = None
    value: str = ""

    def __post_init__(self) -> None:
        """Raise `BadInput` for an unknown kind, an invalid value, or a request that this kind cannot affect."""
        if self.kind not in KINDS:
            problem = f"fault {self.kind!r} is unknown; expected one of {', '.join(KINDS)}"
            raise BadInput(with_suggestion(problem, self.kind, KINDS))
        if self.nth is not None and self.nth < 1:
            raise BadInput(f"fault {self}: calls count from 1, got @{self.nth}")
        if self.kind in _SECONDS and not (self.kind == "dies" and not self.value):
            self._number("seconds")
        if self.kind == "huge" and self.value:
            self._number("bytes")
        if self.kind == "changes" and not self.value:
            raise BadInput(
                f"fault {self}: expected the tools to list after the change, for example changes=a,b"
            )
        if (self.kind == "loops") != (self.on == LIST) and (self.kind == "loops" or self.kind in _ONLY_CALLS):
            where = f"{LIST} only: loops:{LIST}" if self.kind == "loops" else "calls only"
            raise BadInput(f"fault {self}: only valid for {where}")

    def __str__(self) -> str:
        """Return the fault in `--fault` notation, such as `dies:search@2`."""
        on, nth = f":{self.on}" if self.on else "", f"@{self.nth}" if self.nth else ""
        return f"{self.kind}{on}{nth}{f'={self.value}' if self.value else ''}"

    def _number(self, unit: str) -> None:
        try:
            fits = 0 <= float(self.value) < math.inf
        except ValueError:
            fits = False
        if not fits:
            raise BadInput(f"fault {self}: expected 0 or more {unit}, for example {self.kind}=5")

    @property
    def seconds(self) -> float:
        """The delay in seconds, or 0 for kinds without one."""
        return float(self.value) if self.kind in _SECONDS and self.value else 0.0

    @property
    def size(self) -> int:
        """The size of a huge result in bytes."""
        return int(float(self.value)) if self.value else _HUGE

    @property
    def names(self) -> tuple[str, ...]:
        """The tools listed after a `changes` fault."""
        return tuple(name.strip() for name in self.value.split(",") if name.strip())


def fault_from(text: str) -> McpFault:
    """Parse a fault in the notation `KIND[:TOOL][@N][=VALUE]`, such as `slow:search@2=1.5`; raises `BadInput`."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise BadInput(f"fault {text!r}: expected KIND[:TOOL][@N][=VALUE], like dies:search@2")
    nth = None if found["nth"] is None else int(found["nth"])
    return McpFault(kind=found["kind"], on=found["on"], nth=nth, value=found["value"] or "")  # type: ignore[arg-type]


class Faults:
    """Decides which fault affects a request: the first one that matches. `struck` lists the applied faults."""

    def __init__(self, faults: Iterable[McpFault]) -> None:
        self._faults = tuple(faults)
        self._seen: Counter[int] = Counter()
        self.struck: list[McpFault] = []

    def strike(self, on: str) -> McpFault | None:
        """Count a request, and return the first fault that affects it; `on` is a tool name or `tools/list`."""
        chosen: McpFault | None = None
        for number, fault in enumerate(self._faults):
            if fault.on != on and not (fault.on is None and on != LIST):
                continue
            self._seen[number] += 1
            if chosen is None and fault.nth in (None, self._seen[number]):
                chosen = fault
        if chosen is not None:
            self.struck.append(chosen)
        return chosen

    def count(self, names: Iterable[str]) -> None:
        """Count an earlier process's requests, so that faults with `nth` are not repeated."""
        for on in names:
            self.strike(on)
        self.struck.clear()

    def check_names(self, tools: Iterable[str]) -> None:
        """Raise `BadInput` if a fault names an unknown tool."""
        known = list(tools)
        for fault in self._faults:
            for name in ([fault.on] if fault.on not in (None, LIST) else []) + list(
                fault.names if fault.kind == "changes" else ()
            ):
                if name not in known:
                    problem = f"fault {fault}: unknown tool {name!r}; known: {', '.join(known) or 'none'}"
                    raise BadInput(with_suggestion(problem, str(name), known))

    def unused(self) -> tuple[McpFault, ...]:
        """Return the faults that did not affect any request."""
        return tuple(fault for fault in self._faults if fault not in self.struck)
