"""Agents that read the documentation of their tools and classes."""
# mypy: ignore-errors

from dataclasses import dataclass, field
from typing import List, Optional

import dbzero as db0
import pytest
from statek import docs_style, docstr, get_all, get_any, get_current_agent_name, tool
from statek.agents import SupervisedAgent
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt
from statek.system import brief
from statek.task import delegate_mute_dialog, delegate_mute_task, delegate_task

from statek_sim import tool_call


@db0.memo
@dataclass
class Book:
    """A book on a shelf.

    Has a title and, often, an author.

    Attributes:
        title (str): How it is called.
        year: When it came out.
    """

    title: str
    author: Optional[str] = None
    year: int = field(default=0, metadata={"doc": "The year of printing"})

    @property
    def label(self) -> str:
        """The label.

        Returns:
            What stands on its back.
        """
        return self.title

    def lend(self, to: str, days: int = 14) -> bool:
        """Lend the book.

        Args:
            to: Who gets it.
            days: For how long.

        Returns:
            bool: Whether it worked.
        """
        return True

    def burn(self):
        return None

    def _hide(self):
        """Private."""


class Plain:
    pass


@db0.memo
class Guarded:
    """Something with rules.

    Tags:
        AUTHOR: who wrote it
        LENT

    Attributes:
        name (str): Its name.
        price (int): What it costs.

    STATEK-ACL:
        +name
        +read*
        -read_secret
        +price: SupervisedAgent
    """

    def __init__(self, name):
        self.name = name

    def read(self) -> str:
        """Read it."""
        return self.name

    def read_secret(self) -> str:
        """Read what is hidden."""
        return self.name


@db0.memo
class Reply(FutureResult):
    def __init__(self):
        super().__init__(deps=None, state_num=0)


def reply_there(future: FutureResult) -> bool:
    return False


def reply_text(future: FutureResult) -> List[str]:
    """Read the reply.

    Returns:
        The lines of the reply.
    """
    raise FutureError(future)


@temporal(complement=reply_text, condition=reply_there)
@tool
def ask(question: str, **kwargs) -> FutureResult:
    """Ask somebody.

    Args:
        question: What to ask.
    """
    return Reply()


@tool
def find(
    title: str, limit: int = 5, author: Optional[str] = None, exact: bool = False, **kwargs
) -> List[Book]:
    """Find books.

    Looks at every shelf, slowly.

    Args:
        title (str, required): Part of the title,
            in any case.
        limit: How many at most.
        author: Who wrote it.
        exact: Whether the title is whole.

    Returns:
        List[Book]: What was found.

    Raises:
        ValueError: If the title is empty.

    Examples:
        find("Emma")
        find("Emma", limit=1)
    """
    return []


@tool
def undocumented(a, b, **kwargs):
    """Do something.

    Args:
        a: The first.
    """


@tool
def silent(**kwargs):
    pass


@docs_style(brief_types=True)
@tool
def typed(name: str, tags: List[str] | None = None, **kwargs) -> dict[str, int]:
    """Typed.

    Args:
        name: VARIANTS/:the name/tool:the name for tools
        tags: Some.

    Returns:
        dict: Counts.
    """


@tool
def who(**kwargs):
    """Tell who works."""
    return get_current_agent_name()


@db0.memo
class Librarian(SupervisedAgent):
    """An agent of a class of its own."""


def create(kind=SupervisedAgent, **metadata):
    return kind(
        role="reader",
        _system_prompt=make_system_prompt("You read."),
        _tools=[find, ask, undocumented, silent, typed, who],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


MANY = pytest.mark.statek(
    limits={"max_exceptions": 20, "max_consecutive_exceptions": 20, "max_turns": 40, "max_token_usage": None}
)


@MANY
@pytest.mark.parametrize("reader", ["docstr", "brief"])
def test_agents_read_documentation(statek_app, facts, reader):
    things = [
        "find",
        "ask",
        "undocumented",
        "silent",
        "typed",
        "who",
        "book",
        "Book",
        "guarded",
        "Plain",
        "'find'",
        "5",
        "[1]",
    ]
    methods = [
        "book, 'lend'",
        "Book, 'lend'",
        "book, 'burn'",
        "book, 'nope'",
        "book, ' '",
        "guarded, 'read'",
        "book.lend",
    ]
    script = [f"{reader}({thing})" for thing in (*things, *methods)]
    statek_app.script(reader=[*script, "exit(1)"])
    agent = create()
    for name, value in (("Book", Book), ("Plain", Plain)):
        agent.context[name] = value
    statek_app.create_job(agent, shared_vars={"book": Book("Emma"), "guarded": Guarded("x")})
    statek_app.run()


@MANY
def test_a_model_asks_by_name(statek_app, facts):
    statek_app.script(
        reader=[tool_call("docstr", what="find"), tool_call("brief", what="nowhere"), "exit(1)"]
    )
    statek_app.create_job(create(LLM_TOOLS_SCOPE="+docstr,brief"))
    statek_app.run()


@pytest.mark.parametrize("kind", [SupervisedAgent, Librarian])
def test_the_name_of_an_agent_is_its_class(statek_app, facts, kind):
    statek_app.script(reader=["print(who())", "exit(1)"])
    statek_app.create_job(create(kind))
    statek_app.run()


def test_applications_read_documentation_too(statek_app, facts, capsys):
    docstr(find)
    brief(Book)
    facts["printed"] = capsys.readouterr().out


MANY = pytest.mark.statek(limits={"max_turns": 30, "max_token_usage": None})


@MANY
def test_tools_of_statek_have_documentation_too(statek_app, facts):
    own = ["docstr", "brief", "panic", "find_sub_task_handler", "print_locals", "send_notification_to"]
    statek_app.script(
        reader=[
            *(f"{function}({name})" for name in own for function in ("docstr", "brief")),
            tool_call("docstr", what="panic"),
            tool_call("brief", what="list_of_documents"),
            "exit(1)",
        ]
    )
    statek_app.create_job(create())
    statek_app.run()


@MANY
def test_tools_that_an_agent_can_be_given_have_statek_documentation(statek_app, facts):
    tools = [delegate_task, delegate_mute_task, delegate_mute_dialog, get_all, get_any, translate]
    statek_app.script(
        reader=[
            *(f"{reader}({tool.__name__})" for tool in tools for reader in ("docstr", "brief")),
            "exit(1)",
        ]
    )
    agent = create()
    agent._system_prompt = make_system_prompt("{tools}\n{brief_tools}")
    agent._tools = tools
    statek_app.create_job(agent)
    statek_app.run()
    facts["prompt"] = statek_app.job_of("reader").history[0]


@temporal(extends=delegate_mute_task)
@tool
def translate(text: str, **kwargs):
    """Translate a text.

    Args:
        text: The text.
    """
    return delegate_mute_task(create())
