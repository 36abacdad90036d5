"""Tool calls, and the blocks of code they come with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from statek_sim.runtime.stored.attributes import ended_in
from statek_sim.runtime.stored.containers import inside
from statek_sim.runtime.stored.ordering import in_store_order
from statek_sim.values import JSON

PYTHON_CLI: Final = "python_cli"
"""The tool through which DIRECT agents run Python."""


@dataclass(frozen=True, slots=True)
class CallSpec:
    """One requested tool call. `id` is a string unless the provider sent something else: it goes back as it came.

    `bind` names the local variable that takes the result, or the variables it is unpacked into;
    only warmup under the `docs` profile sets it (003, Warmup Failures).
    """

    id: JSON
    name: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    bind: str | tuple[str, ...] | None = None


def stored_call(call: CallSpec) -> CallSpec:
    """Return a call as it comes back from the store: its keywords in the order of their hashes, its values stored.

    Raises what dbzero raises, SystemError for a value that it damages, such as an integer beyond 64 bits.
    """
    try:
        kwargs = {str(inside(name)): inside(value) for name, value in call.kwargs.items()}
        args = tuple(inside(value) for value in call.args)
    except (OverflowError, UnicodeEncodeError) as damage:
        raise ended_in("CallSpec.__init__") from damage
    return replace(call, args=args, kwargs={name: kwargs[name] for name in in_store_order(kwargs)})


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Code of one warmup block or reply, and the tool calls requested with it.

    `code` is None when a reply had no text. `metadata` is what `#STATEK: key = value` lines said.
    """

    code: str | None = None
    tool_calls: tuple[CallSpec, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def cli_calls(self) -> tuple[CallSpec, ...]:
        """The `python_cli` calls, in the order asked."""
        return tuple(call for call in self.tool_calls if call.name == PYTHON_CLI)

    @property
    def hidden(self) -> bool:
        """Whether `hidden = True`, exactly, keeps this block out of the conversation."""
        return self.metadata.get("hidden") is True
