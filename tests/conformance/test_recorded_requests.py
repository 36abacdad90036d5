"""Requests are those of the real package: address, headers and body, byte for byte."""

from __future__ import annotations

import json

import pytest

from statek_sim.backends.run import run_scenario
from tests.conformance.recording import PROFILES
from tests.conformance.requests import Played, Told, cases, recorded
from tests.tables import table_test


@table_test("version", PROFILES)
@table_test("name", cases())
def test_the_reference_runtime_sends_what_statek_sends(version: str, name: str) -> None:
    scenario, extra = cases()[name]
    played = Played(scenario, extra)

    record = run_scenario(scenario, PROFILES[version], exchanges=played)

    assert record.error is None
    assert _comparable(name, played.told()) == _comparable(name, recorded(version)[name])


def _comparable(name: str, told: Told) -> Told:
    """Return requests as they are; thoughts pass STATEK's store, which has an order of its own for keys."""
    if "thoughts" not in name:
        return told
    sizes = [{**request, "size": str(len(request["body"]))} for request in told]
    return [{**request, "body": json.dumps(json.loads(request["body"]), sort_keys=True)} for request in sizes]


@pytest.mark.parametrize("version", PROFILES)
def test_every_format_and_its_peculiarities_are_recorded(version: str) -> None:
    bodies = [request["body"] for requests in recorded(version).values() for request in requests]
    for part in ('"cache_control"', '"tool_result"', '"functionResponse"', '"reasoning_content"', '"tools"'):
        assert any(part in body for body in bodies), part
    assert sorted(recorded(version)) == sorted(cases())
