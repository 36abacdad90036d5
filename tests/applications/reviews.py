"""An adviser whose answers are looked at before anybody gets them."""
# mypy: ignore-errors

from dataclasses import dataclass

import dbzero as db0
import pytest
from statek import FinalCheck, LLM_StepData, PostProcessor, create_new_job, tool
from statek.agents import DialogAgent, SupervisedAgent
from statek.executors.chat_log_item import PostProcessedItem
from statek.prompt_config import make_system_prompt

from statek_sim import text, tool_call

SENT = []


def send(body, media=None):
    """Answer."""
    SENT.append(body)


@tool
def look(**kwargs):
    """Look something up."""
    return 42


@db0.memo
@dataclass
class Polite(PostProcessor):
    """Adds a greeting."""

    greeting: str = "Dear customer"

    def process(self, llm_step, job):
        if llm_step.call_requests:
            return llm_step
        return LLM_StepData(text=f"{self.greeting}, {llm_step.text}", call_requests=[])


@db0.memo
@dataclass
class Nagging(PostProcessor):
    """Says something beside the reply."""

    def process(self, llm_step, job):
        return ("Remember the rules.", llm_step)


@db0.memo
@dataclass
class Wrong(PostProcessor):
    what: str = "number"

    def process(self, llm_step, job):
        if self.what == "number":
            return 5
        if self.what == "twice":
            return (llm_step, llm_step)
        if self.what == "mixed":
            return (llm_step, 5)
        raise LookupError("no")


@pytest.fixture(autouse=True)
def _nothing_sent():
    SENT.clear()


def adviser(**metadata):
    agent = DialogAgent(send, tools=[look], role="adviser", _metadata={"MODEL": "openai/gpt-4o", **metadata})
    agent.update_system_prompt(make_system_prompt("You advise."))
    return agent


MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)


def seen(job):
    return {
        "sent": list(SENT),
        "items": [type(item).__name__.removeprefix("Memo_") for item in job.chat_log],
        "messages": [item.message for item in job.chat_log if isinstance(item, PostProcessedItem)],
        "actions": job.count_llm_actions(),
    }


@MANY
@pytest.mark.parametrize("style", ["MD_DIALOG", "DIRECT"])
def test_an_early_answer_is_checked_once(statek_app, facts, style):
    statek_app.script(adviser=[text("Draft."), text("Better."), text("Next.")])
    job = statek_app.create_job(adviser(CHAT_STYLE=style, POST_PROCESSORS="FinalCheck()"), message="Help")
    statek_app.run()
    job.push_user_message("And?")
    statek_app.run()
    facts.update(seen(job))


@MANY
def test_a_late_answer_is_not(statek_app, facts):
    statek_app.script(adviser=["x = look()", "y = look()", text("Answer."), text("Answer.")])
    job = statek_app.create_job(adviser(POST_PROCESSORS="FinalCheck(max_llm_actions=2)"), message="Help")
    statek_app.run()
    facts.update(seen(job))


@MANY
def test_tool_calls_count_as_actions(statek_app, facts):
    statek_app.script(adviser=[tool_call("look"), text("Answer."), text("Answer.")])
    job = statek_app.create_job(
        adviser(
            POST_PROCESSORS="FinalCheck(max_llm_actions=2)",
            LLM_TOOLS_SCOPE="APPLICATION",
            CHAT_STYLE="DIRECT",
        ),
        message="Help",
    )
    statek_app.run()
    facts.update(seen(job))


@MANY
def test_processors_of_the_applications_own(statek_app, facts):
    statek_app.script(adviser=[text("it is blue."), text("it is red."), "exit(1)"])
    job = statek_app.create_job(adviser(), message="Colour?", post_processing=Polite())
    statek_app.run()
    facts["first"] = str(job.status)
    facts.update(seen(job))


@MANY
def test_words_beside_a_reply(statek_app, facts):
    statek_app.script(adviser=[text("One."), text("Two."), "exit('x')"])
    job = statek_app.create_job(adviser(), message="Colour?", post_processing=[Nagging(), Polite("Hi")])
    statek_app.run()
    facts.update(seen(job))


@MANY
@pytest.mark.parametrize("what", ["number", "twice", "mixed", "raise"])
def test_wrong_processors(statek_app, facts, what):
    statek_app.script(adviser=[text("One.")])
    statek_app.create_job(adviser(), message="Colour?", post_processing=Wrong(what))
    statek_app.run()


@MANY
def test_plain_agents_are_never_final(statek_app, facts):
    agent = SupervisedAgent(
        role="worker",
        _system_prompt=make_system_prompt("x"),
        _tools=[look],
        _metadata={"MODEL": "openai/gpt-4o", "POST_PROCESSORS": "FinalCheck()"},
    )
    statek_app.script(worker=["print(look())", "exit(1)"])
    job = statek_app.create_job(agent)
    statek_app.run()
    facts.update(seen(job))
    facts["final"] = [job.is_step_final(LLM_StepData("x", [])), job.is_step_final(LLM_StepData("x = 1", []))]


def test_definitions_that_cannot_be_read(statek_app, facts):
    for said in (
        "Nope()",
        "FinalCheck(1)",
        "FinalCheck(a=b)",
        "FinalCheck(",
        "5",
        "FinalCheck(max_llm_actions=1), FinalCheck()",
        " ",
    ):
        facts.attempt(
            said,
            lambda said=said: len(
                create_new_job(adviser(POST_PROCESSORS=said)).job_def.post_processing or []
            ),
        )
    facts.attempt("a text", lambda: create_new_job(adviser(), post_processing="FinalCheck()"))
    facts.attempt("a number", lambda: create_new_job(adviser(), post_processing=[5]))


def test_definitions_are_shared_by_kind(statek_app, facts):
    agent = adviser()
    one, other = (create_new_job(agent, post_processing=FinalCheck(n)) for n in (1, 2))
    third = create_new_job(agent)
    fourth = create_new_job(agent, post_processing=[Polite()])
    facts["same"] = [
        one.job_def == other.job_def,
        one.job_def == third.job_def,
        one.job_def == fourth.job_def,
    ]
    statek_app.script(adviser=[text("x")] * 6 + ["exit(1)"])
    for job in (one, other, third, fourth):
        job.push_user_message("hi")
    statek_app.run()
    facts["sent"] = list(SENT)
