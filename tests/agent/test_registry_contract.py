"""The checker of registries: ours passes, and each planted fault is found with its smallest case."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from statek_sim.agent.effects import ToolFunction, WrittenCall
from statek_sim.agent.replies.calls import Refusal, resolved
from statek_sim.agent.tools.registry import Registry
from statek_sim.agent.tools.tool import result_text, tool_of_schema
from statek_sim.checks import check_tool_registry
from statek_sim.errors import BadInput, ContractViolation
from statek_sim.values import JSON
from tests.tables import table_test


class Ours:
    """The adapter of our registry."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.last = self.registry.offer()

    def register(
        self, name: str, description: str, parameters: Mapping[str, JSON], run: ToolFunction
    ) -> None:
        self.registry.register(tool_of_schema(name, description, parameters, run))

    def offer(self, names: Sequence[str] | None) -> Sequence[str]:
        self.last = self.registry.offer(names=names)
        return self.last.names

    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        written = WrittenCall("1", name, json.dumps(arguments))
        found = resolved(written, self.last, self.registry)
        if isinstance(found, Refusal):
            return False, found.reason
        tool = self.registry.get(name)
        assert tool is not None
        return True, result_text(tool.run(**found[0].arguments))


class AnyRegistered(Ours):
    """Executes every registered tool, offered or not."""

    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        self.last = self.registry.offer()
        return super().call(name, arguments)


class Silent(Ours):
    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        executed, text = super().call(name, arguments)
        return executed, text if executed else "Error."


class Overwrites(Ours):
    def register(
        self, name: str, description: str, parameters: Mapping[str, JSON], run: ToolFunction
    ) -> None:
        if self.registry.get(name) is not None:
            self.registry.unregister(name)
        super().register(name, description, parameters, run)


class Unchecked(Ours):
    """The offered set holds, and arguments are passed on as they come."""

    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        if name not in self.last.tools:
            return super().call(name, arguments)
        return True, result_text(self.last.tools[name].run(**arguments))


class Vague(Ours):
    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        executed, text = super().call(name, arguments)
        return executed, text if executed or "arguments" not in text else f"Error: {name} got the wrong type."


class Guessing(Ours):
    """Makes numbers of whatever looks like one."""

    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        return super().call(name, {key: _guessed(value) for key, value in arguments.items()})


def _guessed(value: JSON) -> JSON:
    return int(float(value)) if isinstance(value, str) and re.fullmatch(r"[\d.]+", value) else value


class Unordered(Ours):
    turn = 0

    def offer(self, names: Sequence[str] | None) -> Sequence[str]:
        found = super().offer(names)
        self.turn += 1
        return found if self.turn % 2 else found[::-1]


class ByLength(Ours):
    """Orders a choice by another rule than the whole."""

    def offer(self, names: Sequence[str] | None) -> Sequence[str]:
        found = super().offer(names)
        return found if names is None else sorted(found, key=lambda name: (len(name), name))


class Copying(Ours):
    def offer(self, names: Sequence[str] | None) -> Sequence[str]:
        copy.deepcopy([tool.parameters for tool in self.registry.list()])
        return super().offer(names)


class Lingering(Ours):
    """What was offered once can be called for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.ever: set[str] = set()

    def offer(self, names: Sequence[str] | None) -> Sequence[str]:
        found = super().offer(names)
        self.ever |= set(found)
        return found

    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        here, self.last = self.last, self.registry.offer(names=sorted(self.ever))
        try:
            return super().call(name, arguments)
        finally:
            self.last = here


class Raising(Ours):
    """Raises for a call that was not offered, instead of telling the model."""

    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        if name == "rm":
            raise KeyError(name)
        return super().call(name, arguments)


class Mute(Ours):
    """Gives back what no contract speaks of."""

    def call(self, name: str, arguments: Mapping[str, JSON]) -> Any:
        return None


class Wordy(Ours):
    """Offers one text."""

    def offer(self, names: Sequence[str] | None) -> Sequence[str]:
        return ", ".join(super().offer(names))


class Full(Ours):
    """Has no room for any tool."""

    def register(self, *arguments: Any) -> None:
        raise OSError("disk full")


def test_an_adapter_that_lacks_methods_is_told_which() -> None:
    class Half:
        def offer(self, names: Sequence[str] | None) -> Sequence[str]:
            return ()

    said = (
        r"^the adapter Half has no register and no call; expected the methods of RegistryAdapter: register, "
    )
    with pytest.raises(BadInput, match=said):
        check_tool_registry(Half)  # type: ignore[arg-type]


def test_our_registry_keeps_the_contract() -> None:
    assert check_tool_registry(Ours) > 200


FAULTS: list[tuple[type[Ours], str]] = [
    (AnyRegistered, "zeta_list registered, none offered, zeta_list called: it was executed"),
    (Lingering, "zeta_list registered, none offered, zeta_list called: it was executed"),
    (
        Silent,
        "zeta_list registered, none offered, zeta_list called: the model reads 'Error.', which does not name the call",
    ),
    (
        Overwrites,
        "zeta_list registered twice: the second was accepted, so one of the two is never called",
    ),
    (
        Mute,
        "zeta_list registered, none offered, zeta_list called: the call gives None, "
        "expected whether it was executed, and a text",
    ),
    (Wordy, "zeta_list registered, all offered: the offer is 'zeta_list', expected a list of names"),
    (Full, "zeta_list registered: the registry raised OSError: disk full"),
    (Raising, "zeta_list registered, none offered, rm called: the registry raised KeyError: 'rm'"),
    (Unchecked, "zeta_list({}), which does not fit: it was executed"),
    (
        Vague,
        "zeta_list({}), which does not fit: the model reads 'Error: zeta_list got the wrong type.', "
        "which does not lead to count",
    ),
    (
        Guessing,
        'zeta_list({"count": "4.5"}), which does not fit: it was executed',
    ),
    (
        Unordered,
        "zeta_list, alpha_read registered, zeta_list, alpha_read asked for: one turn offers zeta_list, alpha_read, "
        "the next alpha_read, zeta_list",
    ),
    (
        ByLength,
        "zeta_list, alpha_read, mid_write registered, zeta_list, mid_write asked for: the offer is mid_write, "
        "zeta_list, while all come as zeta_list, alpha_read, mid_write",
    ),
]


@table_test(("registry", "said"), FAULTS, ids=[registry.__name__ for registry, _ in FAULTS])
def test_a_registry_with_a_fault_is_found_with_the_smallest_case(registry: type[Ours], said: str) -> None:
    with pytest.raises(ContractViolation) as found:
        check_tool_registry(registry)
    assert str(found.value) == said


def test_a_registry_whose_order_is_that_of_a_set_is_found() -> None:
    class OfASet(Ours):
        def offer(self, names: Sequence[str] | None) -> Sequence[str]:
            order = ["mid_write", "zeta_list", "alpha_read", "omega_stop", "beta_send", "kappa_find"]
            return sorted(super().offer(names), key=order.index)

    said = r"the offer is mid_write, zeta_list, alpha_read, neither the order of registration nor that of the alphabet"
    with pytest.raises(ContractViolation, match=said):
        check_tool_registry(OfASet)


def test_a_registry_that_copies_every_schema_every_turn_costs_too_much() -> None:
    said = r"^1000 tools registered, the same 5 offered again: each of the others costs \d+ steps, expected 40 at most"
    with pytest.raises(ContractViolation, match=said):
        check_tool_registry(Copying)
