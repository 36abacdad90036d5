"""A container for tests: it runs nothing, and answers as it was told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Event
from typing import Final

from statek_sim.agent.containers.program import Ended, Limits, Program
from statek_sim.errors import ScriptExhausted

_DEFAULTS: Final = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What comes of one program, after so many virtual seconds; `runs` is the text that its arguments must have."""

    ended: Ended
    seconds: float = 0.0
    runs: str = ""


class ScriptedContainer:
    """Gives its answers in their order. `programs` are those that it was asked to run."""

    name = "scripted"

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = list(answers)
        self.programs: list[Program] = []

    def run(self, program: Program, limits: Limits = _DEFAULTS, *, stop: Event | None = None) -> Ended:
        """Return the next answer at once; the time it takes is for who asks `answer`."""
        return self.answer(program, limits)[1]

    def answer(self, program: Program, limits: Limits = _DEFAULTS) -> tuple[float, Ended]:
        """Return how long a program takes, and what comes of it: what takes too long is killed at its limit."""
        self.programs.append(program)
        shown = " ".join(program.argv)
        if len(self.programs) > len(self._answers):
            raise ScriptExhausted(
                f"program {shown!r} is the {len(self.programs)}., and {len(self._answers)} are scripted"
            )
        answer = self._answers[len(self.programs) - 1]
        if answer.runs not in shown:
            raise ScriptExhausted(f"program {shown!r} is run, and the script has {answer.runs!r} next")
        if answer.seconds > limits.seconds:
            return limits.seconds, Ended(exit=None, signal=9, timed_out=True)
        return answer.seconds, answer.ended
