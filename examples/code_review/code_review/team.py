"""The review team: the specialists' prompts and priorities, and how their findings are combined."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from statek_sim import AgentHarness
from statek_sim.agents import AsyncDriver, AsyncModel, LoopClock
from statek_sim.slots import Slot, SlotWorker

SPECIALISTS: Mapping[str, str] = MappingProxyType(
    {
        "planner": "Say whether the change does what it sets out to do, and what is missing.",
        "security": "Say what an attacker could do with the change.",
        "performance": "Say what the change costs, and where.",
    }
)
CRITIC = "Sum up the findings: what has to change before this is merged?"

SPECIALIST_PRIORITY = 2
CRITIC_PRIORITY = 1
"""Higher priority, so that a nearly finished review completes before another one starts."""


class NoAnswer(Exception):
    """An agent ended without an answer; the message states which and why."""


@dataclass(frozen=True)
class Review:
    """The critic's summary and the findings by specialist; for a failed specialist, the reason."""

    synthesis: str
    findings: Mapping[str, str]


class Team:
    """Reviews changes with a model shared by all agents through `worker`."""

    def __init__(self, model: AsyncModel, worker: SlotWorker) -> None:
        self._model = model
        self._worker = worker

    async def review(self, diff: str) -> Review:
        """Have the specialists review a diff and the critic sum up their findings, including failures."""
        asked = [self._ask(role, prompt, diff, SPECIALIST_PRIORITY) for role, prompt in SPECIALISTS.items()]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        findings = {role: _finding(answer) for role, answer in zip(SPECIALISTS, answers, strict=True)}
        told = "\n\n".join(f"{role}:\n{finding}" for role, finding in findings.items())
        return Review(await self._ask("critic", CRITIC, told, CRITIC_PRIORITY), findings)

    async def _ask(self, role: str, prompt: str, text: str, priority: int) -> str:
        return await self._worker.submit(
            lambda slot: self._work(role, prompt, text, slot), submitter=role, priority=priority
        )

    async def _work(self, role: str, prompt: str, text: str, slot: Slot) -> str:
        clock = LoopClock()
        run = AgentHarness(prompt=prompt, role=role).begin(text, clock=clock)

        async def model(request):
            reply = await self._model(request)
            await slot.step()
            return reply

        await AsyncDriver(model, clock=clock.now).run(run)
        if run.answer is None:
            raise NoAnswer(f"{role}: {run.stop}")
        return run.answer


def _finding(answer: str | BaseException) -> str:
    if isinstance(answer, NoAnswer):
        return f"no finding ({answer})"
    if isinstance(answer, BaseException):
        raise answer
    return answer
