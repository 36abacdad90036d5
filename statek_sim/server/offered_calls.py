"""A scripted call must be one that the request offers: a typo in a script is no test of anything.

Held against each other are names only: of the tool, and of its arguments. What a model gets wrong on purpose says
`mistaken()`, as broken arguments do by themselves. What a function answers is not looked at, and neither is a request
that offers no tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import UnmatchedRequest
from statek_sim.providers.script import Chat, ScriptedCall
from statek_sim.providers.scripted import Entry
from statek_sim.values import ToolSpec


def check_offered(entry: Entry, tools: Sequence[ToolSpec]) -> None:
    """Raise `UnmatchedRequest` for a call of a reply that the tools of a request have no place for."""
    message = entry.reply.answer
    is_meant = entry.reply.is_mistaken or entry.reply.malformed_arguments is not None
    if not tools or is_meant or not isinstance(message, Chat):
        return
    offered = dict(_offered(tools))
    for call in message.calls if offered else ():
        problem = _problem(call, offered)
        if problem is not None:
            raise UnmatchedRequest(
                f"reply {entry.position} {problem} Correct the script; a model that makes this mistake on purpose is "
                f"tool_call({call.name!r}, ...).mistaken()"
            )


def _offered(tools: Sequence[ToolSpec]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in tools:
        function: Any = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            schema = function.get("parameters")
            yield name, schema if isinstance(schema, dict) else {}


def _problem(call: ScriptedCall, offered: Mapping[str, Mapping[str, Any]]) -> str | None:
    if call.name not in offered:
        names = ", ".join(offered)
        return f"calls {call.name!r}, but the request offers {names}.{suggestion(call.name, offered)}"
    schema = offered[call.name]
    known, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(known, dict) or not isinstance(required, list):
        return None
    for name in call.args if not schema.get("additionalProperties") else ():
        if name not in known:
            names = ", ".join(known) or "no arguments"
            return f"calls {call.name} with {name!r}, but it takes {names}.{suggestion(name, known)}"
    missing = next((name for name in required if name not in call.args), None)
    return None if missing is None else f"calls {call.name} without {missing!r}, which it requires."
