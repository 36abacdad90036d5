"""`Researcher` and `MessageDispatcher`: agents whose tools are made around the application's functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from statek_sim.runtime.tools.documentation import docstr
from statek_sim.shim.agents import SupervisedAgent
from statek_sim.shim.memo import memo
from statek_sim.shim.tools import create_tool

Tool = Callable[..., Any]


@memo
class Researcher(SupervisedAgent):
    """An agent that may ask its user, and answers; `ask` and `answer` are made around `send_message`.

    Tools of these names among the application's take their places.
    """

    send_message: Any = None
    additional_tools: Any = None

    def __init__(
        self, send_message: Tool | None = None, tools: Iterable[Tool] | None = None, role: str = "researcher"
    ) -> None:
        self.send_message = send_message
        self.additional_tools = [] if tools is None else tools
        SupervisedAgent.__init__(self, role, None, [docstr, *self.additional_tools])
        self.append_tool("ask")
        self.append_tool("answer")

    def init_context(self) -> None:
        """Put the two tools into the context; without `send_message` both must be the application's own."""
        if self._X__context is not None:
            return
        super().init_context()
        own = {tool.__name__: tool for tool in self._tools if tool.__name__ in ("ask", "answer")}
        if self.send_message is None and len(own) < 2:
            raise ValueError(
                "send_message is required when custom 'ask' and/or 'answer' tools are not both provided in tools"
            )
        self.context.update({"ask": self._ask(), "answer": self._answer(), **own})

    def _ask(self) -> Tool:
        def ask(question: str) -> Any:
            return self.send_message(question)

        ask.__doc__ = _ASK
        ask.__annotations__.pop("return")
        return ask

    def _answer(self) -> Tool:
        def answer(content: str) -> Any:
            return self._answer_impl(content)

        answer.__doc__ = _ANSWER
        answer.__annotations__.pop("return")
        return answer

    def _answer_impl(self, content: str) -> None:
        # Agent code never gets here: STATEK keeps it from an object's private methods.
        self.send_message(content)
        sys.exit("Success")


# What agents read about these tools, byte for byte.
_ASK: Final = """Ask the user a clarifying question.

        Use this ONLY if the user's intent is ambiguous or if key details are
        missing to conduct a search. Do not ask for confirmation to proceed;
        only ask for necessary clarification.

        Args:
            question (required): The clarifying question to ask the user

        Returns:
            The user's response
        """
_ANSWER: Final = """Deliver the final answer to the user.

        Use this to provide the final response after gathering and synthesizing
        all necessary information.

        Args:
            content (required): The answer content to send to the user

        Returns:
            None (exits immediately after sending)
        """


@memo
class MessageDispatcher(SupervisedAgent):
    """An agent that takes a message to the thread where it belongs, by three functions of the application's."""

    chat_history: Any = None
    start_new_thread: Any = None
    dispatch_to: Any = None

    def __init__(
        self, chat_history: Tool, start_new_thread: Tool, dispatch_to: Tool, role: str = "message_dispatcher"
    ) -> None:
        self.chat_history = chat_history
        self.start_new_thread = start_new_thread
        self.dispatch_to = dispatch_to
        SupervisedAgent.__init__(self, role, None, [docstr, chat_history, start_new_thread, dispatch_to])

    def init_context(self) -> None:
        """Put tools without arguments into the context, each around one of the functions."""
        if self._X__context is not None:
            return
        super().init_context()
        for name, function, text in (
            ("chat_history", self.chat_history, _HISTORY),
            ("start_new_chat_thread", self.start_new_thread, _START),
            ("dispatch_to", self.dispatch_to, _DISPATCH),
        ):
            create_tool(name, function, text, self.context)


_HISTORY: Final = """Retrieve the chat communication history.

        Use this to review recent conversations and understand the context of
        ongoing threads before making a routing decision.

        Returns:
            The chat communication history
        """
_START: Final = """Start a new chat thread for a new conversation.

        Use this when the incoming message introduces a new topic, request,
        or question that doesn't relate to any existing thread.

        Returns:
            The newly created thread identifier
        """
_DISPATCH: Final = """Dispatch the analyzed message to a specific thread.

        Use this when the incoming message is a continuation of an existing
        conversation thread (e.g., answering a question, providing requested
        information, or following up on a previous topic).

        Returns:
            Confirmation of successful dispatch
        """
