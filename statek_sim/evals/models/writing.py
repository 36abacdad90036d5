"""How a simulated model's reply arrives: an OpenAI-style answer with native calls, or text that meant to be one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.evals.models.chance import uniform
from statek_sim.evals.models.mistakes import damaged
from statek_sim.providers.protocol import RawReply
from statek_sim.values import JSON

CUT: Final = 0.5
"""How much arrives of the arguments of a native call that is damaged."""


@dataclass(frozen=True, slots=True)
class Meant:
    """A call as a model means it."""

    name: str
    arguments: Mapping[str, JSON]


def said(text: str) -> RawReply:
    """Return an answer that is text."""
    return _body({"role": "assistant", "content": text}, "stop")


def called(calls: Sequence[Meant], turn: int, *, arguments: str | None = None) -> RawReply:
    """Return an answer with native calls; `arguments`: the raw text of those of the first one, where it is damaged."""
    written: list[JSON] = []
    for at, call in enumerate(calls):
        text = json.dumps(dict(call.arguments), ensure_ascii=False)
        if at == 0 and arguments is not None:
            text = arguments
        function: JSON = {"name": call.name, "arguments": text}
        written.append({"id": f"call_{turn}_{at}", "type": "function", "function": function})
    return _body({"role": "assistant", "content": None, "tool_calls": written}, "tool_calls")


def cut_arguments(call: Meant) -> str:
    """Return the raw text of arguments that end in their middle."""
    text = json.dumps(dict(call.arguments), ensure_ascii=False)
    return text[: max(1, int(len(text) * CUT))]


def rendered(calls: Sequence[Meant], dialect: str, kind: str) -> str:
    """Return calls as text in a dialect, the last of them damaged."""
    texts = [_rendered(call, dialect) for call in calls]
    last = calls[-1]
    texts[-1] = damaged(kind, texts[-1], last.name, last.arguments)
    return "\n".join(texts)


def _rendered(call: Meant, dialect: str) -> str:
    said_so = RENDERINGS[dialect](call.name, call.arguments)
    if said_so is None:  # The dialect cannot say this call; every model can write JSON.
        said_so = RENDERINGS["json"](call.name, call.arguments)
    assert said_so is not None, "JSON can say every call"
    return said_so


def kind_of_damage(weights: Mapping[str, float], *words: str | int) -> str:
    """Return the way in which a call is damaged, by weight."""
    left = uniform(*words) * sum(weights.values())
    for kind in sorted(weights):
        left -= weights[kind]
        if left < 0:
            return kind
    return max(weights, key=lambda kind: (weights[kind], kind))


def meaning_of(reply: RawReply) -> tuple[str, ...]:
    """Return what a reply of a simulated model says, without the ids of its calls: equal for the same thing again."""
    message = json.loads(reply.body)["choices"][0]["message"]
    functions = [call["function"] for call in message.get("tool_calls", ())]
    return (
        message["content"] or "",
        *(f"{function['name']} {function['arguments']}" for function in functions),
    )


def _body(message: Mapping[str, JSON], finish: str) -> RawReply:
    choice: JSON = {"index": 0, "message": dict(message), "finish_reason": finish}
    return RawReply(
        json.dumps({"object": "chat.completion", "choices": [choice]}, ensure_ascii=False).encode()
    )
