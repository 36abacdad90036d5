"""An experiment's arms: the same harness, each time with a different set of parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput

PARTS: Final = ("rescue", "nudges", "steps", "context", "protection")
"""The parts: rescue parsing, corrections, step enforcement, context compaction, loop protection."""

AGENT: Final = "agent"
BARE: Final = "bare"
FULL: Final = "full"
ABLATION: Final = "ablation"


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm, with its name and its enabled parts.

    `agent` is the `module:attribute` of a user's own agent, which replaces the built-in harness. If `ideal` is set, the
    model makes no mistakes.
    """

    name: str
    parts: frozenset[str]
    agent: str | None = None
    ideal: bool = False

    @property
    def listed(self) -> tuple[str, ...]:
        """The enabled parts, in order."""
        return tuple(part for part in PARTS if part in self.parts)

    def has(self, part: str) -> bool:
        """Return whether a part is enabled."""
        return part in self.parts


def named_after(parts: Iterable[str]) -> Arm:
    """Return an arm with exactly these parts, named after them."""
    chosen = frozenset(parts)
    lacking = [part for part in PARTS if part not in chosen]
    if not lacking:
        return Arm(FULL, chosen)
    if not chosen:
        return Arm(BARE, chosen)
    if len(lacking) == 1:
        return Arm(f"no-{lacking[0]}", chosen)
    return Arm("+".join(part for part in PARTS if part in chosen), chosen)


def beside_agent(agent: str, arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """Return these arms and an arm for the user's agent, each also with a model that makes no mistakes."""
    simulated = (Arm(AGENT, frozenset(), agent=agent), *arms)
    return (*simulated, *(replace(arm, name=f"{arm.name}, ideal", ideal=True) for arm in simulated))


def ablation() -> tuple[Arm, ...]:
    """Return the full harness, the harness with each part removed in turn, and the bare loop."""
    without = (named_after(part for part in PARTS if part != gone) for gone in PARTS)
    return (named_after(PARTS), *without, named_after(()))


def parse_arms(words: Iterable[str], *, said_by: str = "--arms") -> tuple[Arm, ...]:
    """Return the arms with these names; raises `BadInput` for an unknown part or a duplicate arm.

    A name is `ablation`, `full`, `bare`, `no-PART`, or parts joined by `+`. Arms with equal parts are duplicates, even
    under different names. Error messages start with `said_by`, the name of the option.
    """
    found: dict[str, Arm] = {}
    by_arm: dict[str, str] = {}
    for word in words:
        for arm in _arms(word, said_by):
            if arm.name in by_arm:
                raise BadInput(
                    f"{said_by}: {word!r} and {by_arm[arm.name]!r} both include the arm {arm.name}; list it once"
                )
            by_arm[arm.name], found[arm.name] = word, arm
    if not found:
        raise BadInput(
            f"{said_by}: no arm given; expected ablation, full, bare, no-PART or parts joined by +"
        )
    return tuple(found.values())


def _arms(name: str, said_by: str) -> tuple[Arm, ...]:
    if name == ABLATION:
        return ablation()
    if name in (FULL, BARE):
        return (named_after(PARTS if name == FULL else ()),)
    if name.startswith("no-"):
        return (named_after(part for part in PARTS if part != _part(name[3:], said_by)),)
    return (named_after(_part(part_name, said_by) for part_name in name.split("+")),)


def _part(name: str, said_by: str) -> str:
    if name not in PARTS:
        known = f"one or more of {', '.join(PARTS)}, or ablation, full or bare"
        problem = f"{said_by}: {name!r} is not a part; expected {known}"
        raise BadInput(with_suggestion(problem, name, (*PARTS, ABLATION, FULL, BARE)))
    return name
