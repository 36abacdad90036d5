"""All errors that this package raises on purpose.

    StatekSimError
    +-- BadInput                 a user's file, setting or argument is invalid
    |   +-- BadScenario          a scenario file; the message starts with `path:line`
    |   +-- BadSetting           an environment variable or preset file
    |   +-- BadPolicy            a gate policy file; the message starts with `path:line`
    |   +-- BadCassette          a cassette file; the message starts with `path:line`
    |   +-- BadTool              a tool, subtask or error handler that breaks its protocol
    |   +-- NotAnAgent           a job is created for something that is not an agent
    |   +-- BadStore             a store of jobs or sessions; the message starts with its address
    |       +-- NoSuchRun        no run or session with this name
    |       +-- Damaged          the stored data differs from what was saved
    |       +-- Held, Fenced     another worker holds the run, or has taken it over
    |       +-- OtherPlan        the session was saved for another task
    |       +-- NotOurs          only the application that keeps the run can resume it
    +-- TransitionError          a job status change that the status table does not allow
    +-- ScriptError              the script does not match the job's requests
    |   +-- ScriptExhausted      the job requested more replies than the script has
    |   +-- UnmatchedRequest     no scripted reply accepts this request
    |   +-- UnusedReplies        replies were unused when the run ended
    |   +-- UnusedResults        scripted tool results were unused when the run ended
    |   +-- UnusedEvents         events were unused because their tool call never happened
    |   +-- NotAsked             a person's answer to a question that was not asked
    |   +-- Unanswered           a run is waiting for a person who never answers
    +-- ProviderFailure          what a real provider's client would raise
    |   +-- ProviderHTTPError    an HTTP status that is not a success
    |   +-- ProviderTimeout      no answer within the client's time limit
    |   +-- ProviderUnreachable  no connection, or one that broke
    +-- ProviderBug              a provider raised another error, or returned a wrong type
    +-- BadRequest               a request body that a provider would reject
    +-- UnplayedRecordings       a run ended with recordings that no request used
    +-- CassetteMiss             a request without a recording in the cassette
    +-- NetworkForbidden         code tried a real network connection
    +-- AsyncToolStuck           an async tool awaits something that never happens in virtual time
    +-- RunawayJob               a job, or an agent loop, that would never end
    +-- Livelock                 a job whose step fails in the same way forever
    +-- SlotRefused              a slot worker rejected or stopped the job
    +-- ContainerFailed          no container could be created for a program
    |   +-- ContainerRefused     a folder to which a program must not write
    +-- PartBroke                a user's part of an agent raised, or returned a wrong type
    +-- CompactionFailed         a history could not be shortened
    |   +-- ContextOverflow      the messages that must stay exceed the budget
    +-- ContractViolation        a pluggable part broke its contract
    LLM_HarnessError, FutureError, InvalidFormat, SandboxViolation, JobDefFailure
                                 STATEK's own names: agent code and consoles show them

The second group does not share the root, as in STATEK: `except StatekSimError` in a test must not swallow an error that
is meant for the agent under test.
"""

from __future__ import annotations

from typing import ClassVar, Final


class StatekSimError(Exception):
    """Base class for errors that concern this toolkit or the test, not the agent under test."""


class BadInput(StatekSimError):
    """User input is invalid; nothing was run or changed."""


class BadScenario(BadInput):
    """A scenario file is invalid. The message has one line `path:line: problem` for each problem."""


class Untimely(BadScenario):
    """A scenario event targets a job or subtask that does not exist at that time."""


class BadSetting(BadInput):
    """A setting, environment variable or preset file is invalid."""


class BadPolicy(BadInput):
    """A gate policy file is invalid. The message has one line `path:line: problem` for each problem."""


class BadCassette(BadInput):
    """A cassette file is invalid or damaged. The message gives the path, the line, the problem and a remedy."""


class BadTool(BadInput, TypeError):
    """A tool, subtask or error handler breaks its protocol. This is also a `TypeError`, as in STATEK."""


class NotAnAgent(BadInput, AttributeError):
    """A job is created for something that is not an agent. This is also an `AttributeError`, as in STATEK."""


class TransitionError(StatekSimError):
    """The status table does not allow this change to a job's status."""


class ScriptError(StatekSimError):
    """A scripted LLM's script does not match the run's requests."""


class ScriptExhausted(ScriptError):
    """A job requested more replies than its script has."""


class UnmatchedRequest(ScriptError):
    """The script has replies left, but none of them matches this request."""


class UnusedReplies(ScriptError):
    """Scripted replies were never used."""


class UnusedResults(ScriptError):
    """The run ended with scripted tool results that no call used."""


class UnusedEvents(ScriptError):
    """The run ended with unused events, because the tool calls that trigger them were never made."""


class NotAsked(ScriptError):
    """A scenario answers a question that nobody was asked at that time."""


class Unanswered(ScriptError):
    """A run is waiting for a person who is not available or never answers."""


class ProviderFailure(StatekSimError):
    """A provider gave no usable answer. `latency` is the time until the failure, in virtual seconds."""

    known_as: ClassVar[str | None] = None
    """The STATEK HTTP client exception that agents see instead of this one."""

    def __init__(self, message: str, *, latency: float = 0.0) -> None:
        super().__init__(message)
        self.latency = latency


class ProviderHTTPError(ProviderFailure):
    """The provider answered with an HTTP status outside 200-299.

    `retry_after` is the number of seconds to wait before retrying, if the provider specified it.
    """

    known_as = "httpx.HTTPStatusError"

    def __init__(
        self, message: str, *, status: int, latency: float = 0.0, retry_after: float | None = None
    ) -> None:
        super().__init__(message, latency=latency)
        self.status = status
        self.retry_after = retry_after


class ProviderTimeout(ProviderFailure):
    """The provider did not answer within the client's time limit (60 virtual seconds in STATEK)."""

    known_as = "httpx.ReadTimeout"


class ProviderUnreachable(ProviderFailure):
    """The provider could not be reached, or the connection broke before the answer was complete."""

    known_as = "httpx.ConnectError"


class ProviderBug(StatekSimError):
    """A provider raised something other than a `ProviderFailure`, or did not return a `RawReply`.

    This fails the run, not the job: a broken fake must not look like an agent that crashed.
    """


class BadRequest(StatekSimError):
    """A request body does not follow its format; the message gives the location and what was expected.

    `parameter` is the invalid field, if there is only one. `code` is the provider's error code.
    """

    def __init__(self, message: str, *, parameter: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.code = code


class CassetteMiss(StatekSimError):
    """The cassette has no unplayed recording for a request. The message shows the closest recording."""


class UnplayedRecordings(StatekSimError):
    """A run ended with recordings that no request used."""


class NetworkForbidden(StatekSimError):
    """Code tried to open a real network connection while that was forbidden."""


class AsyncToolStuck(StatekSimError):
    """An async tool awaits something other than a timer, such as real I/O."""


class StoppedInTool(BadInput):
    """A run would end while a job is awaiting an async tool, and could not be continued from there."""

    def __init__(self, second: float) -> None:
        super().__init__(
            f"the run cannot end at virtual second {second:g}, because a job is awaiting an async tool; "
            f"let the run continue, and inspect that second from an action: at({second:g}, ...)"
        )


class RunawayJob(StatekSimError):
    """A job took more steps or time than a run allows, or a loop kept starting jobs; the run would never end."""


class Livelock(StatekSimError):
    """A job's worker fails with an exception and repeats the same step forever, as STATEK's does."""


FAILS_THE_RUN: Final = (NetworkForbidden, AsyncToolStuck)
"""Errors in a user's tool that are hidden from agent code, because they concern the test, not the agent."""


class SlotRefused(StatekSimError):
    """A slot worker rejected a job: too many are waiting, the worker is closed, or a more urgent job displaced it."""


class ContainerFailed(StatekSimError):
    """No container could be created, so the program did not run. The message gives the reason and a remedy."""


class ContainerRefused(ContainerFailed):
    """A program must not or cannot write to a folder that it was given."""


class PartBroke(StatekSimError):
    """A user's guard, gate, watcher, chooser, compactor or reader is broken; this fails the run."""


class CompactionFailed(StatekSimError):
    """A history could not be shortened into a form that the provider accepts; no request was sent."""


class ContextOverflow(CompactionFailed):
    """The messages in a history that must stay exceed its budget. Your own compactors should raise this too."""


class BadStore(BadInput):
    """A store cannot be used: it is not a store, belongs to a newer version of this package, or lacks the run.

    The message starts with the store's address, also in subclasses.
    """


class Damaged(BadStore):
    """The stored data differs from what was saved: it was torn, edited, moved or written by another program."""


class NoSuchRun(BadStore):
    """The store has no run or session with this name."""


class NotOurs(BadStore):
    """Only the application that keeps the run can resume it."""


class Held(BadStore):
    """Another worker holds the run and its lease has not expired, or another process holds a lock."""


class Fenced(BadStore):
    """Another worker has taken over the run; this worker's changes are no longer saved."""


class OtherPlan(BadStore):
    """The session was saved for a different task."""


class ContractViolation(StatekSimError):
    """A pluggable part broke its contract, as found by `check_provider`, `check_compaction` or another checker."""


class LLM_HarnessError(Exception):  # noqa: N801  # STATEK's own name
    """A harness limit was exceeded ("Harness Policies", When Checks Run)."""


class InvalidFormat(Exception):
    """A tool call in a provider's answer cannot be parsed (behaviour 6.6)."""


class SandboxViolation(RuntimeError):
    """Code written by the model does something that the sandbox policy forbids (behaviour 3)."""
