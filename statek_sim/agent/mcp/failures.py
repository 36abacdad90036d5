"""What can go wrong with an MCP server, by name: each is a result that the model reads."""

from __future__ import annotations

from typing import Final

from statek_sim.agent.effects import ToolOutcome, ToolStatus

_SHOWN: Final = 300


class McpFailure(Exception):
    """A server failed; the message says which server, what it was asked, and what came."""


class McpServerDied(McpFailure):
    """The server ended, or its connection did, before it answered."""


class McpServerGone(McpFailure):
    """The server is not there and is not started again."""


class McpTimedOut(McpFailure):
    """The server did not answer in time."""


class McpBadAnswer(McpFailure):
    """The server answered with what is no result."""


class McpRefused(McpFailure):
    """The server answered with a JSON-RPC error."""


class McpToolFailed(McpFailure):
    """The tool says itself that it failed (`isError`)."""


def died(server: str, doing: str) -> McpServerDied:
    """Return that a server died while it was doing something: whether that was done nobody knows."""
    return McpServerDied(f"MCP server {server!r} ended before it answered {doing}")


def gone(server: str, restarts: int, why: str = "") -> McpServerGone:
    """Return that a server died and is not started again, or could not be."""
    again = "is not started again" if not restarts else f"was started again {_times(restarts)} and is gone"
    return McpServerGone(f"MCP server {server!r} died and {again}{f': {why}' if why else ''}")


def not_there(server: str, why: str) -> McpServerGone:
    """Return that a server was never there."""
    return McpServerGone(f"MCP server {server!r} {why}")


def call_of(tool: str) -> str:
    """Return the words for the call of a tool."""
    return f"the call of {tool!r}"


def silent(server: str, doing: str, seconds: float, garbage: str = "") -> McpTimedOut:
    """Return that a server did not answer; `garbage` is what it sent that nobody could read."""
    sent = "; it sent what is no message" if garbage else ""
    return McpTimedOut(f"MCP server {server!r} did not answer {doing} within {seconds:g} seconds{sent}")


def no_result(server: str, doing: str, what: str) -> McpBadAnswer:
    """Return that an answer is no result."""
    return McpBadAnswer(f"MCP server {server!r} answered {doing} with what is no result: {what[:_SHOWN]}")


def refused(server: str, doing: str, code: int, message: str) -> McpRefused:
    """Return that the server refused."""
    return McpRefused(f"MCP server {server!r} refused {doing}: {message[:_SHOWN]} ({code})")


def outcome(failure: McpFailure) -> ToolOutcome:
    """Return a failure as the result of a call."""
    status = ToolStatus.TIMED_OUT if isinstance(failure, McpTimedOut) else ToolStatus.RAISED
    return ToolOutcome(status, f"{type(failure).__name__}: {failure}".removesuffix(": "))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
