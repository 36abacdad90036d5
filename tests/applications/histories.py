"""A service desk that prints the conversations of its jobs afterwards."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import FinalCheck, complete_sub_task, create_new_job, get_current_job, subtask, tool
from statek.agents import DialogAgent, SupervisedAgent
from statek.chat_history import ChatRole
from statek.locale import resolve_locale
from statek.prompt_config import make_system_prompt
from statek.system import panic
from statek.task_difficulty import TaskDifficulty

from statek_sim import raw, text, tool_call

MODEL = "openai/gpt-4o"


@db0.memo(singleton=True)
class Desk:
    def __init__(self):
        self.agents = {}


@tool
def look_up(name: str, **kwargs):
    """Look a customer up."""
    if name == "nobody":
        raise KeyError(name)
    return {"name": name, "plan": "gold"}


@tool
def done(answer: str, **kwargs):
    """Report the answer."""
    complete_sub_task(answer)


@subtask
def hire(task: str, **kwargs):
    """Hire somebody."""
    return create_new_job(Desk().agents["hired"], {"task": task}, parent_job=get_current_job())


def send(body, media=None):
    """Deliver nowhere."""


def history(job):
    return [
        [
            str(one.role),
            one.content,
            str(one.content_src),
            _calls(one.tool_calls),
            one.provider_reasoning_payload,
        ]
        for one in job.get_chat_history()
    ]


def _calls(given):
    if given is None:
        return None
    calls = given if isinstance(given, list) else [given]
    return [isinstance(given, list), [[call.id, call.func_name, dict(call.kwargs or {})] for call in calls]]


def dialog(**metadata):
    agent = DialogAgent(send, tools=[look_up], role="desk", _metadata={"MODEL": MODEL, **metadata})
    agent.update_system_prompt(make_system_prompt("You help."))
    return agent


WARMUP = "print('hello')\n# ----------\n#STATEK: hidden = True\nn = 2\n# ----------\nlook_up('ann') #STATEK: as tool\nprint(n)"


@pytest.mark.not_what_was_sent  # all registered tools are sent
@pytest.mark.parametrize("style", ["MD_DIALOG", "DIRECT"])
def test_dialogs(statek_app, facts, style):
    agent = dialog(CHAT_STYLE=style, LLM_TOOLS_SCOPE="ALL")
    agent.update_warmup_def(WARMUP)
    agent.set_new_reminder("Close it.", min_dialog_len=2)
    last = "answer('bye')"
    statek_app.script(
        desk=[
            tool_call("look_up", {"name": "nobody"}),
            text("Found her."),
            tool_call("python_cli", {"code": "print(n)"})
            if style == "DIRECT"
            else text("```python\nprint(n)\n```"),
            text("Anything else?"),
            tool_call("python_cli", {"code": last}) if style == "DIRECT" else text(f"```python\n{last}\n```"),
        ]
    )
    job = statek_app.create_job(agent, message="Find Ann", post_processing=FinalCheck())
    statek_app.run()
    facts["history"] = history(job)
    job.push_user_message("Once more")
    facts["pushed"] = history(job)[-2:]


def test_subtasks_and_notifications(statek_app, facts):
    def create(role, *tools):
        prompt = make_system_prompt("You work.")
        return SupervisedAgent(role=role, _system_prompt=prompt, _tools=[*tools], _metadata={"MODEL": MODEL})

    Desk().agents["hired"] = create("hired", done)
    statek_app.script(
        boss=["task = hire('paint', id='p')", "print('waiting')", "1/0", "exit(1)", "exit(2)"],
        hired=["print(task)\ndone('blue')", "exit(0)"],
    )
    job = statek_app.create_job(create("boss", hire), name="boss", message="Begin.")
    statek_app.run()
    job.send_notification("hurry")
    statek_app.run()
    facts["history"] = history(job)
    facts["roles"] = [one.role == ChatRole.USER for one in job.get_chat_history()]
    facts["lazy"] = type(job.get_chat_history()).__name__


@pytest.mark.parametrize(
    "code",
    [
        "job.get_chat_history",
        "[*job.get_chat_history()]",
        "job.get_next_request()",
        "job.get_request_data(0)",
        "job.get_next_request",
        "for one in job.get_chat_history():\n    print(one)",
    ],
)
def test_agent_code_cannot_read_them(statek_app, facts, code):
    agent = SupervisedAgent(
        role="desk", _system_prompt=make_system_prompt("You work."), _tools=[], _metadata={"MODEL": MODEL}
    )
    statek_app.script(desk=["exit(0)", code, "exit(1)"])
    other = statek_app.create_job(agent)
    statek_app.run()
    statek_app.create_job(agent, shared_vars={"job": other})
    statek_app.run()


def request(data):
    shown = [[str(one.role), one.content, _calls(one.tool_calls)] for one in data["chat_history"]]
    tools = [function.__name__ for function in data["available_tools"]]
    metadata = {name: str(value) for name, value in data["metadata"].items()}
    style = str(data.get("chat_style", "(none)"))
    return {
        **data,
        "chat_history": shown,
        "available_tools": tools,
        "metadata": metadata,
        "chat_style": style,
    }


@pytest.mark.parametrize("style", ["MD_DIALOG", "DIRECT"])
def test_requests_of_a_dialog(statek_app, facts, style):
    agent = dialog(CHAT_STYLE=style, TEMPERATURE="0.5")
    agent.update_warmup_def(WARMUP)
    statek_app.script(desk=[tool_call("look_up", {"name": "ann"}), text("Found her."), text("Bye.")])
    job = create_new_job(agent, locale=resolve_locale("PL-PL"))
    job.push_user_message("Who?")
    facts["first"] = request(job.get_next_request())
    statek_app.at(5, lambda: job.push_user_message("And?"))
    statek_app.run()
    facts["next"] = request(job.get_next_request())
    for turn in (-1, 0, 1, 2, 3):
        facts.attempt(f"turn {turn}", lambda turn=turn: request(job.get_request_data(turn)))


def test_requests_of_two_difficulties(statek_app, facts):
    prompt = make_system_prompt("You work.\n--- H: Hard ---\nThink.")
    agent = SupervisedAgent(
        role="desk",
        _system_prompt=prompt,
        _tools=[look_up, look_up, panic],
        _metadata={"MODEL": "LM:a/b,H:c/d"},
    )
    statek_app.script(desk=["print(1)", "panic()", "exit(2)"])
    job = create_new_job(agent)
    statek_app.run()
    for level in (None, *TaskDifficulty.values()):
        facts.attempt(f"next {level}", lambda level=level: request(job.get_next_request(level)))
    for turn in range(3):
        facts.attempt(f"turn {turn}", lambda turn=turn: request(job.get_request_data(turn)))


def test_thinking_is_sent_back_with_its_keys_in_the_order_of_the_store(statek_app, facts):
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "look_up",
        "input": {"name": "ann", "b": 1, "a": {"z": 1, "c": 2}},
    }
    answers = [
        [thought, {"type": "text", "text": "print(1)"}],
        [thought, call],
        [{"type": "text", "text": "exit(1)"}],
    ]
    statek_app.script(desk=[raw({"content": content}) for content in answers])
    metadata = {"MODEL": "anthropic/claude/claude-sonnet", "LLM_TOOLS_SCOPE": "APPLICATION"}
    statek_app.create_job(
        SupervisedAgent(
            role="desk", _system_prompt=make_system_prompt("You help."), _tools=[look_up], _metadata=metadata
        )
    )
    statek_app.run()
    facts["sent"] = [repr(request.body()["messages"]) for request in statek_app.requests]
