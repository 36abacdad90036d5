"""Warmup code: blocks, tool calls, hidden blocks, blocks that fail or wait, and text that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from statek_sim.conformance.examples.draw import Draw
from statek_sim.conformance.examples.subjects import Subject

_LINES: Final = (
    "note('warm') #STATEK: as tool",
    "echo(value=1) #STATEK: as tool",
    "fetch_next_item(owner) #STATEK: as tool",
    "fail('cold') #STATEK: as tool",
    "missing_tool() #STATEK: as tool",
    "wait_for('approval') #STATEK: as tool",
    "#STATEK: hidden = True",
    "#STATEK: hidden = False",
    "#STATEK: label = 'x'",
    "# STATEK: a comment",
    "a = note('x') #STATEK: as tool",
    "echo(a + 1) #STATEK: as tool",
    "#STATEK: hidden",
    "# ---------",
    "print('- warm')",
)
_SEPARATORS: Final = ("\n# ----------\n", "\n  #--------------------\n", "\n# ----------\n# ----------\n")


def warmup(subject: Subject) -> Callable[[Draw], str]:
    """Return what makes the warmup of an agent or a job."""

    def code(draw: Draw) -> str:
        return draw.part(subject.warmup_code).rstrip("\n")

    def line(draw: Draw) -> str:
        return draw.of(_LINES)

    def block(draw: Draw) -> str:
        return "\n".join(draw.some(lambda draw: draw.of((code, line, line))(draw), least=1, most=2))

    def made(draw: Draw) -> str:
        return draw.of(_SEPARATORS).join(draw.some(block, least=1, most=3)) + "\n"

    return made
