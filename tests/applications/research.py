"""A research assistant that asks its user, and a dispatcher that sorts messages into threads."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import docstr, tool
from statek.agents import MessageDispatcher, Researcher
from statek.agents.researcher import Researcher as SameResearcher
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt

from statek_sim import tool_call

SENT = []


@db0.memo(singleton=True)
class Inbox:
    def __init__(self):
        self.replies = []


@db0.memo
class Reply(FutureResult):
    def __init__(self, number):
        super().__init__(deps=None, state_num=0)
        self.number = number


def is_there(future) -> bool:
    return len(Inbox().replies) > future.number


def reply(future) -> str:
    if not is_there(future):
        raise FutureError(future)
    return Inbox().replies[future.number]


@temporal(complement=reply, condition=is_there)
def write(text):
    """Write to the user and wait."""
    SENT.append(text)
    return Reply(len(SENT) - 1)


def say(text):
    """Tell the user."""
    SENT.append(text)


@tool
def search(query: str, limit: int = 3, **kwargs):
    """Search the library.

    Args:
        query (required): What for.
        limit: How many results.

    Returns:
        list: Titles.
    """
    return [f"{query} {n}" for n in range(limit)]


@tool
def ask(question: str, **kwargs):
    """Ask in a way of our own."""
    return f"asked {question}"


@tool
def answer(content: str, **kwargs):
    """Answer in a way of our own."""
    SENT.append(content)
    exit("answered")


@pytest.fixture(autouse=True)
def _nothing_sent():
    SENT.clear()


def researcher(send, *tools, **metadata):
    agent = Researcher(send, tools=list(tools))
    agent.update_system_prompt(make_system_prompt("You look things up."))
    agent.update_metadata({"MODEL": "openai/gpt-4o", **metadata})
    return agent


MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)


@MANY
def test_a_researcher_asks_and_answers(statek_app, facts):
    statek_app.script(
        researcher=[
            "a = ask('which?')\nprint(a)",
            "found = search(a)\nprint(found)",
            "answer('It is ' + found[0])",
            "exit('told')",
        ]
    )
    agent = researcher(write, search)
    job = statek_app.create_job(agent)
    statek_app.at(30, lambda: Inbox().replies.append("cats"))
    facts["outcome"] = [statek_app.run().at, str(job.status)]
    facts["sent"] = list(SENT)
    facts["tools"] = [f.__name__ for f in agent.tools]
    facts["same"] = SameResearcher is Researcher


@MANY
def test_an_answer_by_the_made_tool(statek_app, facts):
    statek_app.script(researcher=["answer('done')", "exit(1)"])
    statek_app.create_job(researcher(say, search))
    statek_app.run()
    facts["sent"] = list(SENT)


@MANY
def test_documentation_of_its_tools(statek_app, facts):
    statek_app.script(researcher=["docstr(search)", "docstr(ask)", "docstr(answer)", "exit(1)"])
    statek_app.create_job(researcher(say, search))
    statek_app.run()


@MANY
def test_tools_of_the_applications_own(statek_app, facts):
    statek_app.script(researcher=["print(ask('x'))", "answer('y')"])
    agent = researcher(None, ask, answer)
    facts["tools"] = [f.__name__ for f in agent.tools]
    statek_app.create_job(agent)
    statek_app.run()
    facts["sent"] = list(SENT)


def test_what_a_researcher_needs(statek_app, facts):
    facts.attempt("nothing", lambda: [f.__name__ for f in researcher(None).tools])
    facts.attempt("one", lambda: researcher(None, ask).context)
    facts["role"] = Researcher(say).role
    facts["named"] = Researcher(say, role="librarian").role


@MANY
def test_what_it_is_offered(statek_app, facts):
    statek_app.script(researcher=[tool_call("search", query="x"), tool_call("ask", question="y"), "exit(1)"])
    statek_app.create_job(researcher(say, search, LLM_TOOLS_SCOPE="ALL -panic"))
    statek_app.run()
    facts["offered"] = statek_app.requests[0].tools
    facts["sent"] = list(SENT)


def history():
    """What was said."""
    return ["hello", "bye"]


def start():
    """Begin anew."""
    SENT.append("started")
    return "thread 2"


def to():
    """Pass on."""
    SENT.append("passed")
    return "thread 1"


@MANY
def test_a_dispatcher(statek_app, facts):
    agent = MessageDispatcher(history, start, to)
    agent.update_metadata({"MODEL": "openai/gpt-4o"})
    facts["tools"] = [f.__name__ for f in agent.tools]
    facts["context"] = sorted(agent.context)
    statek_app.script(
        message_dispatcher=[
            "print(history())",
            "print(chat_history())",
            "print(start_new_chat_thread())",
            "print(dispatch_to())",
            "docstr(chat_history)\ndocstr(dispatch_to)",
            "exit(1)",
        ]
    )
    statek_app.create_job(agent)
    statek_app.run()
    facts["sent"] = list(SENT)
