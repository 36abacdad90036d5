"""Agents with chat styles, given in every place where one could give them."""
# mypy: ignore-errors

import pytest
from statek import create_new_job
from statek.agents import DialogAgent, SupervisedAgent
from statek.chat_style import ChatStyle
from statek.prompt_config import make_system_prompt

from statek_sim import text

SENT = []


def send(body, media=None):
    """Say something."""
    SENT.append(body)


def plain(prompt="You work.", **metadata):
    return SupervisedAgent(
        role="worker",
        _system_prompt=make_system_prompt(prompt),
        _tools=[],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


def test_metadata_of_a_plain_agent_gives_no_style(statek_app, facts):
    statek_app.script(worker=["print('x')", "exit(1)"])
    job = statek_app.create_job(plain(CHAT_STYLE="MARKDOWN"))
    statek_app.run()
    facts["style"] = [str(job.job_def.chat_style), str(job.job_def._chat_style)]
    facts["metadata"] = dict(job.job_def.metadata)


def test_an_argument_for_a_plain_agent_is_a_parameter_of_its_prompt(statek_app, facts):
    statek_app.script(worker=["print('x')", "exit(1)"])
    job = create_new_job(plain("Style {chat_style}."), chat_style="DIRECT")
    statek_app.run()
    facts["style"] = str(job.job_def.chat_style)
    facts["params"] = dict(job.job_def.job_params)


def test_an_argument_that_the_prompt_does_not_name(statek_app, facts):
    statek_app.script(worker=["print('x')", "exit(1)"])
    job = create_new_job(plain(), chat_style=ChatStyle.DIRECT, topic="tea")
    statek_app.run()
    facts["params"] = {name: str(value) for name, value in dict(job.job_def.job_params).items()}


@pytest.mark.parametrize("style", ["MARKDOWN", "CONSOLE", None])
def test_a_definition_is_given_a_style(statek_app, facts, style):
    statek_app.script(worker=["print('x')", "exit(1)"])
    job = create_new_job(plain())
    job.job_def.set_chat_style(None if style is None else ChatStyle[style])
    statek_app.run()
    facts["style"] = str(job.job_def.chat_style)


@pytest.mark.parametrize("metadata", [None, "MARKDOWN", "DIRECT"])
@pytest.mark.parametrize("argument", [None, ChatStyle.DIRECT, ChatStyle.MD_DIALOG], ids=str)
def test_dialog_agents_have_styles(statek_app, facts, metadata, argument):
    SENT.clear()
    agent = DialogAgent(
        send,
        role="host",
        _metadata={"MODEL": "openai/gpt-4o", **({"CHAT_STYLE": metadata} if metadata else {})},
    )
    options = {} if argument is None else {"chat_style": argument}
    job = statek_app.create_job(agent, message="Hi", **options)
    markdown = metadata == "MARKDOWN" and argument is None
    statek_app.script(host=["exit(1)"] if markdown else [text("Hello.")])
    statek_app.run()
    facts["style"] = str(job.job_def.chat_style)
    facts["sent"] = list(SENT)
    facts["params"] = job.job_def.job_params


def test_wrong_styles(statek_app, facts):
    agent = DialogAgent(send, role="host", _metadata={"MODEL": "openai/gpt-4o", "CHAT_STYLE": "LOUD"})
    facts.attempt("metadata", lambda: create_new_job(agent))
    facts.attempt(
        "lower",
        lambda: create_new_job(
            DialogAgent(send, role="low", _metadata={"MODEL": "m/x", "CHAT_STYLE": "direct"})
        ),
    )


@pytest.mark.statek(preset=__import__("pathlib").Path(__file__).with_name("markdown.env"))
def test_the_setting_is_the_style_of_plain_agents(statek_app, facts):
    statek_app.script(worker=["print('x')", "exit(1)"])
    job = create_new_job(plain(CHAT_STYLE="CONSOLE"))
    statek_app.run()
    facts["style"] = str(job.job_def.chat_style)
