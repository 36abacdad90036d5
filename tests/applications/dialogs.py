"""A hotel's front desk: dialogs with guests, reminders, and what an application reads of them afterwards."""
# mypy: ignore-errors

import pytest
from statek import create_new_job, tool
from statek.agents import DialogAgent
from statek.chat_style import ChatStyle
from statek.prompt_config import make_system_prompt
from statek.task import delegate_mute_dialog, start_dialog

from statek_sim import text, tool_call

SENT = []


def send(body, media=None):
    """Talk to the guest."""
    SENT.append([body, media])


def broken(body, media=None):
    """Fail."""
    raise OSError("line is dead")


@tool
def rooms(**kwargs):
    """List rooms."""
    return ["101", "102"]


@pytest.fixture(autouse=True)
def _nothing_sent():
    SENT.clear()


def desk(**options):
    metadata = {"MODEL": "openai/gpt-4o", **options.pop("metadata", {})}
    agent = DialogAgent(send, tools=[rooms], role=options.pop("role", "desk"), _metadata=metadata, **options)
    agent.update_system_prompt(make_system_prompt("You are the desk."))
    return agent


def told(job):
    return {
        "dialog": [list(item) for item in job.get_dialog()],
        "roles": [item.role for item in job.get_dialog()],
        "responses": list(job.get_chat_responses()),
        "actions": job.count_llm_actions(),
        # The real package stamps them by the real clock.
        "times": [seconds is None for _, seconds in job.get_response_times()],
    }


MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)


@MANY
@pytest.mark.parametrize("style", ["MD_DIALOG", "DIRECT"])
def test_a_conversation_is_read_back(statek_app, facts, style):
    agent = desk(metadata={"CHAT_STYLE": style, "LLM_TOOLS_SCOPE": "APPLICATION"})
    statek_app.script(
        desk=[
            text("Welcome!").after(2),
            tool_call("rooms").after(1),
            text("We have 101 and 102.").after(3),
            text("Goodbye."),
        ]
    )
    job = statek_app.create_job(agent, message="Hello")
    statek_app.run()
    statek_app.at(60, lambda: job.push_user_message("Rooms?"))
    statek_app.at(120, lambda: job.push_user_message("Bye"))
    statek_app.run()
    facts.update(told(job))
    facts["sent"] = list(SENT)


@MANY
def test_code_and_text_in_one_reply(statek_app, facts):
    statek_app.script(
        desk=[
            "r = rooms()\nprint(r)",
            text("We have rooms.\n```python\nx = 1\n```\nAnything else?"),
            text("Fine."),
        ]
    )
    job = statek_app.create_job(desk(), message="Hello")
    statek_app.run()
    facts.update(told(job))
    facts["sent"] = list(SENT)


@MANY
@pytest.mark.parametrize("style", ["MD_DIALOG", "DIRECT"])
def test_the_answer_tool_ends_a_dialog(statek_app, facts, style):
    agent = desk(metadata={"CHAT_STYLE": style, "LLM_TOOLS_SCOPE": "ALL"})
    statek_app.script(desk=[tool_call("answer", body="It's done.", media="a/b.png")])
    job = statek_app.create_job(agent, message="Hello")
    statek_app.run()
    facts.update(told(job))
    facts["sent"] = list(SENT)


@MANY
def test_the_answer_tool_in_code(statek_app, facts):
    statek_app.script(desk=["answer('Done')\nprint('never')"])
    job = statek_app.create_job(desk(), message="Hello")
    statek_app.run()
    facts.update(told(job))
    facts["sent"] = list(SENT)


@MANY
@pytest.mark.parametrize("length", [None, 0, 1, 3])
def test_reminders(statek_app, facts, length):
    agent = desk()
    agent.set_new_reminder("Anything else?", min_dialog_len=length)
    fires = length is None or length == 0 or length == 1
    statek_app.script(desk=[text("One."), *([text("Two."), "answer('Three')"] if fires else [])])
    job = statek_app.create_job(agent, message="Hello")
    if length == 3:
        statek_app.run()
        facts["first"] = str(job.status)
        job.push_user_message("More")
        statek_app.script(desk=[text("Two."), "answer('Three')"])
    statek_app.run()
    facts.update(told(job))
    facts["reminder"] = [agent.reminder.text, agent.reminder.min_dialog_len]


@MANY
def test_a_mute_dialog_comes_back_as_text(statek_app, facts):
    host = desk(role="host", add_answer_tool=True)

    @tool
    def ask(question: str, **kwargs):
        return delegate_mute_dialog(host, question)

    agent = desk(role="front")
    agent.append_tool(ask)
    statek_app.script(
        front=["a = ask('who?')\nprint(a)", text("It is me.")],
        host=[text("I look.\n```python\nx = rooms()\n```"), "answer('Ada')"],
    )
    statek_app.create_job(agent, message="Hello")
    statek_app.run()
    facts["sent"] = list(SENT)


def test_dialogs_are_started_by_the_application(statek_app, facts):
    first = start_dialog(desk(), "Hello", shared_vars={"guest": "Ada"}, topic="rooms")
    second = start_dialog(desk(role="desk2"), 5)
    statek_app.script(desk=[text("Hi.")], desk2=[text("Ho.")])
    statek_app.run()
    facts["params"] = dict(first.job_def.job_params)
    facts["messages"] = [[list(item) for item in job.get_dialog()] for job in (first, second)]


def test_objects_as_messages_go_through_the_adapter(statek_app, facts):
    agent = desk()
    agent.context["message_adapter"] = lambda message: f"guest says {message}"
    statek_app.script(desk=[text("Hi.")])
    start_dialog(agent, ["x"])
    statek_app.run()


@MANY
def test_a_failing_send_is_an_exception_of_the_turn(statek_app, facts):
    agent = DialogAgent(broken, role="desk", _metadata={"MODEL": "openai/gpt-4o"})
    statek_app.script(desk=[text("Hi."), "exit('gave up')"])
    statek_app.create_job(agent, message="Hello")
    statek_app.run()


def test_what_a_dialog_agent_needs(statek_app, facts):
    facts.attempt("not callable", lambda: DialogAgent("x"))
    facts.attempt("no body", lambda: DialogAgent(lambda text: None))
    facts.attempt("reminder kind", lambda: desk().set_new_reminder("x", type="ONCE"))
    facts.attempt("no reminder", lambda: desk().set_reminder("x"))
    facts["tools"] = [[f.__name__ for f in desk().tools], [f.__name__ for f in desk().all_tools]]
    facts["no answer"] = [f.__name__ for f in desk(add_answer_tool=False).all_tools]
