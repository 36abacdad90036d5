"""A shell tool for agents that runs commands only in a container, and a scripted container for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

from statek_sim.agent.containers.program import Container, Ended, Limits, Mount, Program
from statek_sim.agent.effects import Delayed, ToolFunction
from statek_sim.agent.tools.tool import Tool
from statek_sim.errors import ContainerFailed, ScriptExhausted

_DEFAULTS: Final = Limits()


async def run_async(container: Container, program: Program, limits: Limits = _DEFAULTS) -> Ended:
    """Run a program in a thread and return its outcome. On cancellation, the program is killed first."""
    stop = Event()
    running = asyncio.ensure_future(asyncio.to_thread(container.run, program, limits, stop=stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([running])
        raise


def shell_tool(
    container: Container,
    *,
    mounts: Sequence[Mount] = (),
    folder: Path | None = None,
    limits: Limits = _DEFAULTS,
    name: str = "run_shell",
    shell: Sequence[str] = ("/bin/sh", "-c"),
) -> Tool:
    """Return a tool that runs each shell command in a new container.

    The result is the command's output, followed by the exit status if it is not 0. A call may take slightly longer
    than `limits.seconds`.
    """

    def program(command: str) -> Program:
        return Program(argv=(*shell, command), mounts=mounts, folder=folder)

    async def run(command: str) -> str:
        try:
            return outcome_text(await run_async(container, program(command), limits))
        except ContainerFailed as error:
            raise RuntimeError(f"nothing was run: {error}") from error

    def scripted(command: str) -> Delayed:
        assert isinstance(container, ScriptedContainer)
        seconds, ended = container.answer(program(command), limits)
        return Delayed(seconds, outcome_text(ended))

    code: ToolFunction = scripted if isinstance(container, ScriptedContainer) else run
    return Tool(
        name=name,
        description=f"Run a command in a sandbox without network, for at most {limits.seconds:g} seconds.",
        parameters={
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command."}},
            "required": ["command"],
        },
        run=code,
        timeout=limits.seconds + 10,
        access={"command": "command"},
        sandboxed=True,
    )


def outcome_text(ended: Ended) -> str:
    """Return the text that tells a model how a program ended."""
    lines = [ended.stdout.rstrip("\n")] if ended.stdout else []
    if ended.stderr:
        lines.append(f"[stderr]\n{ended.stderr.rstrip()}")
    if ended.truncated:
        lines.append("[further output was discarded]")
    if ended.exit != 0:
        lines.append(f"[{ended.why}]")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A scripted outcome after `seconds` of virtual time; `runs` must occur in the command line."""

    ended: Ended
    seconds: float = 0.0
    runs: str = ""


class ScriptedContainer:
    """A fake container for tests: it returns scripted results in order. `programs` lists the programs that were run."""

    name = "scripted"

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = list(answers)
        self.programs: list[Program] = []

    def run(self, program: Program, limits: Limits = _DEFAULTS, *, stop: Event | None = None) -> Ended:
        """Return the next answer immediately; call `answer` to get the duration too."""
        return self.answer(program, limits)[1]

    def answer(self, program: Program, limits: Limits = _DEFAULTS) -> tuple[float, Ended]:
        """Return a program's duration and outcome; a program that takes too long is killed at its limit."""
        self.programs.append(program)
        shown = " ".join(program.argv)
        if len(self.programs) > len(self._answers):
            raise ScriptExhausted(
                f"program {shown!r} is call {len(self.programs)}, but only {len(self._answers)} are scripted"
            )
        answer = self._answers[len(self.programs) - 1]
        if answer.runs not in shown:
            raise ScriptExhausted(f"program {shown!r} was run, but the script expects {answer.runs!r} next")
        if answer.seconds > limits.seconds:
            return limits.seconds, Ended(exit=None, signal=9, timed_out=True)
        return answer.seconds, answer.ended
