"""Tests a review without a real model; all time is virtual."""

import asyncio

from code_review.team import Team

from statek_sim import ScriptedLLM, fault, text
from statek_sim.agents import VirtualLoop, model_of, run_in
from statek_sim.slots import SlotWorker

SCRIPT = {
    "planner": [text("Plan: fine.").after(2)],
    "security": [text("Security: a token is logged.").after(2)],
    "performance": [text("Performance: fine.").after(2)],
    "critic": [text("Do not log the token.").after(1)],
}


class Model:
    """A scripted model that handles one request at a time and records who called it when."""

    def __init__(self, script):
        self.script = ScriptedLLM(script)
        self.asked = []
        self.busy = False

    async def __call__(self, request):
        assert not self.busy, "two requests at a time on one slot"
        self.busy = True
        self.asked.append((asyncio.get_running_loop().time(), request.role))
        try:
            return await model_of(self.script)(request)
        finally:
            self.busy = False


def play(scene):
    """Run a coroutine in virtual time."""
    return run_in(VirtualLoop(), scene)


def test_the_critic_reads_what_the_specialists_found():
    model = Model(SCRIPT)

    async def scene():
        async with SlotWorker() as worker:
            return await Team(model, worker).review("+ log(token)")

    review = play(scene())
    assert review.synthesis == "Do not log the token."
    assert model.asked == [(0, "planner"), (2, "security"), (4, "performance"), (6, "critic")]
    said = model.script.requests[-1].messages[-1]["content"]
    assert "security:\nSecurity: a token is logged." in said
    model.script.check_finished()


def test_a_specialist_that_fails_is_named_and_the_review_goes_on():
    model = Model({**SCRIPT, "security": [fault(401)]})

    async def scene():
        async with SlotWorker() as worker:
            return await Team(model, worker).review("+ log(token)")

    review = play(scene())
    assert review.findings["security"].startswith("no finding (security: ")
    assert review.synthesis == "Do not log the token."


def test_a_review_that_is_nearly_done_is_finished_before_another_goes_on():
    model = Model({role: replies * 2 for role, replies in SCRIPT.items()})

    async def scene():
        async with SlotWorker() as worker:
            team = Team(model, worker)
            first = asyncio.create_task(team.review("first"))
            await asyncio.sleep(1)
            await asyncio.gather(first, team.review("second"))

    play(scene())
    roles = [role for _, role in model.asked]
    # The slot was given on before there was a critic; its next step is the critic's.
    assert roles[:5] == ["planner", "security", "performance", "planner", "critic"]
    assert roles.count("critic") == 2


def test_a_review_that_is_given_up_harms_no_other():
    model = Model({role: replies * 2 for role, replies in SCRIPT.items()})

    async def scene():
        async with SlotWorker() as worker:
            team = Team(model, worker)
            given_up = asyncio.create_task(team.review("first"))
            other = asyncio.create_task(team.review("second"))
            await asyncio.sleep(3)
            given_up.cancel()
            return (await asyncio.wait_for(other, 60)).synthesis, worker.waiting, worker.running

    assert play(scene()) == ("Do not log the token.", 0, 0)
