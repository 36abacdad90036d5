"""Reply bodies are read as the real package reads them, odd ones and broken ones too."""

from __future__ import annotations

import pytest

from statek_sim.errors import InvalidFormat
from statek_sim.providers.wire.format import FORMATS
from tests.conformance.recording import PROFILES
from tests.conformance.replies import BODIES, Read, recorded
from tests.tables import table_test

CASES = [(name, body) for name, bodies in BODIES.items() for body in bodies]
STATEKS = (ValueError, RuntimeError, InvalidFormat, AttributeError, LookupError, TypeError)


def read(name: str, body: str) -> Read:
    try:
        reply = next(wire for wire in FORMATS.values() if name == wire.NAME).read_reply(body.encode())
    except STATEKS as error:
        return {"error": type(error).__name__, "text": str(error)}
    usage = reply.usage
    return {
        "text": reply.text,
        "calls": [[call.id, call.name, call.arguments] for call in reply.tool_calls],
        "usage": [usage.prompt, usage.completion, usage.cached, usage.cost],
        "reasoning": _payload(name, reply.reasoning),
    }


def _payload(name: str, reasoning: object) -> object:
    """Return reasoning as STATEK keeps it: OpenAI's by field, the others' as one list of blocks."""
    if name == "openai" or not isinstance(reasoning, dict):
        return reasoning
    (blocks,) = reasoning.values()
    return blocks


@table_test("version", PROFILES)
@table_test(("name", "body"), CASES)
def test_a_body_is_read_as_statek_reads_it(version: str, name: str, body: str) -> None:
    assert read(name, body) == recorded(version)[name][body]


@pytest.mark.parametrize("version", PROFILES)
def test_every_record_is_compared(version: str) -> None:
    assert {name: tuple(read) for name, read in recorded(version).items()} == BODIES
