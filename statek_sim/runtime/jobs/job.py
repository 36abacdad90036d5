"""The job: a durable Python workspace for one unit of agent work ("Jobs")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Token
from typing import Any

from statek_sim import trace as events
from statek_sim.runtime.agents.agent import Agent, JobDef, JobDefError
from statek_sim.runtime.agents.dialog import dialog_of
from statek_sim.runtime.agents.history import HistoryProjection
from statek_sim.runtime.jobs.job_log import JobLog, Keeping
from statek_sim.runtime.jobs.lifecycle import Difficulty, Inbox, Life
from statek_sim.runtime.state.access import StoredObject, member
from statek_sim.runtime.state.chat_log import ChatItem, CodeBlock, DifficultyChangeLogItem, job_members
from statek_sim.runtime.state.context import Host, bound_context, current, reset_context, set_context
from statek_sim.runtime.state.counters import LLM_Usage
from statek_sim.runtime.state.error_handlers import HandlerList
from statek_sim.runtime.state.futures import FutureResult
from statek_sim.runtime.state.pyenv import ErrorKind, PyEnv, SharedNames
from statek_sim.runtime.state.status import JobStatus
from statek_sim.values import Message


class Job(StoredObject):
    """One durable unit of work. Create jobs with `Runtime.create_job`, never directly.

    Fields have STATEK's names ("Jobs"). `lifecycle` changes the status, `inbox` receives messages and
    notifications, and `job_log` keeps the log and the stored values. `signal` fires when the job becomes
    DONE. `stop`, `exit`, `console`, `locals` and `trace` are the names used in reports; jobs in `statek_app`
    tests have the same attributes.
    """

    __slots__ = (
        "__weakref__", "_difficulty", "awaited_result", "chat_log", "chat_style", "created_at", "error",
        "error_handlers", "history", "host", "id", "inbox", "job_def", "job_log", "keeping", "life", "llm_calls",
        "next_instr_num", "num_completions", "parent_job", "py_env", "sent", "shared_names", "signal", "steps",
        "tool_via", "usage", "warmup_block_num",
    )  # fmt: skip

    __store_members__ = job_members
    member = staticmethod(member)
    """Converts enum members to the form that the reading code gets."""

    def __init__(
        self,
        host: Host,
        job_id: str,
        job_def: JobDef,
        history: HistoryProjection,
        parent_job: Job | None = None,
    ) -> None:
        self.host, self.id, self.job_def = host, job_id, job_def
        self.history, self.parent_job = history, parent_job
        style = job_def.chat_style
        self.chat_style = host.default_chat_style if style is None else style
        self.py_env = PyEnv(stores=host.profile.storage == "dbzero")
        self.created_at = host.timestamp()
        self.job_log = JobLog(host.profile)
        self.chat_log = self.job_log.items
        self.awaited_result: FutureResult | None = None
        self.next_instr_num: int | tuple[int, object] | str | None = None
        self.warmup_block_num: int | None = None
        self.error: JobDefError | None = None
        self.usage = LLM_Usage()
        self.num_completions: int | None = None
        self._difficulty = Difficulty(job_def, host.default_difficulty)
        self.sent: Sequence[Message] = ()
        self.shared_names: SharedNames | None = None
        self.steps = self.llm_calls = 0
        self.tool_via = "code"
        self.error_handlers, self.keeping, self.life = HandlerList(self), Keeping(self), Life(self)
        self.inbox, self.signal = Inbox(self), self.life.ended

    def __short_text__(self) -> str:
        return "<Object>"

    def __repr__(self) -> str:
        return f"Job({self.id!r}, {self.agent.role!r}, {self.status})"

    @property
    def status(self) -> JobStatus:
        """The job's status; only `life.move_to` changes it."""
        return self.member(self.life.status)

    @property
    def stop_reason(self) -> str | None:
        """Why the last unit of work ended: exit, final, the name of a limit, crash, warmup or contained."""
        return self.life.stop_reason

    @property
    def agent(self) -> Agent:
        """The job's agent."""
        return self.job_def.agent

    @property
    def stop(self) -> str | None:
        """Why the last unit of work ended: `stop_reason`."""
        return self.stop_reason

    @property
    def exit(self) -> object:
        """The argument to `exit`, or None if there was none (`py_env.exit_status`)."""
        return self.py_env.exit_status

    @property
    def console(self) -> list[str]:
        """The job's output, one string per entry (`py_env.lines`)."""
        return self.py_env.lines

    @property
    def locals(self) -> dict[str, object]:
        """The workspace variables (`py_env.local_state`). A block's bindings appear when the block ends."""
        return self.py_env.local_state

    @property
    def trace(self) -> events.JobTrace:
        """This job's events."""
        return self.host.trace.of_job(self.id, lambda: self.host.tools_of(self))

    @property
    def num_turns(self) -> int:
        """Number of LLM turns, including placeholder turns for reactivations (behaviour 4.2)."""
        return self.job_log.counters.turns

    @property
    def exception_count(self) -> int:
        """Number of exceptions in LLM turns, from both code and tools; warmup is excluded ("Harness Policies")."""
        return self.job_log.counters.exceptions

    @property
    def max_consecutive_exceptions(self) -> int:
        """Length of the longest streak of failing LLM turns ("Harness Policies")."""
        return self.job_log.counters.longest_streak

    @property
    def approx_token_usage(self) -> int:
        """`(bytes sent + bytes received) // 4` over all answered requests ("Harness Policies")."""
        return self.usage.approx_tokens

    @property
    def measured_token_usage(self) -> int:
        """Prompt and completion tokens of all answered requests, counted with the tokenizer.

        STATEK has no such count.
        """
        return self.usage.total_measured_tokens

    @property
    def reported_token_usage(self) -> int:
        """Prompt and completion tokens of all answered requests, as reported by the provider."""
        return self.usage.total_input_tokens + self.usage.total_output_tokens

    @property
    def difficulty_token_extension(self) -> int:
        """Tokens added to the limit by difficulty increases (from 1.4.1)."""
        return self._difficulty.token_extension

    def use_defaults(self) -> None:
        """Use the host's present defaults where the definition has no chat style or difficulty."""
        self.chat_style = self.job_def.chat_style or self.host.default_chat_style
        self._difficulty.set_default(self.host.default_difficulty)

    @property
    def difficulty(self) -> str:
        """LOW, MEDIUM or HIGH."""
        return self._difficulty.level

    def system_prompt(self, difficulty: Any = None) -> str:
        """Return the agent's prompt for a difficulty (by default, the current one)."""
        level = self.get_current_difficulty() if difficulty is None else difficulty
        return self.agent.system_prompt(task_difficulty=level, job_params=self.job_def.job_params)

    def get_current_difficulty(self) -> Any:
        """Return the current difficulty."""
        return self.difficulty

    @property
    def raised_difficulty(self) -> Any:
        """The difficulty after an increase, else None."""
        return self.get_current_difficulty() if self._difficulty.is_raised else None

    def panic(self) -> None:
        """Raise the difficulty by one level; from 1.4.1, this extends the token limit by the usage so far."""
        before, tokens, host = self.get_current_difficulty(), self.approx_token_usage, self.host
        extends = host.profile.difficulty_extends_tokens
        level = self._difficulty.rise(tokens if extends else 0)
        if extends:
            now = self.get_current_difficulty()
            self.log(DifficultyChangeLogItem(self.console_pos, host.timestamp(), before, now, tokens))
        host.trace.add(events.DifficultyRaised(host.clock.now(), self.id, level, tokens))

    def log(self, item: ChatItem) -> None:
        """Append to the chat log."""
        self.job_log.add(item)

    @property
    def last_response(self) -> str | CodeBlock | None:
        """The newest item's response if it is an LLM turn, else None (behaviour 2)."""
        return self.job_log.last_response

    @property
    def console_pos(self) -> int:
        """The console's length."""
        return len(self.py_env.lines)

    def console_append(self, text: str, error: ErrorKind | None = None) -> None:
        """Append a console entry; `error` is the kind of error, if the entry is one."""
        index, shown = self.job_log.print(self.py_env, text, error)
        kind = None if error is None else error.value
        self.host.trace.add(events.ConsoleLine(self.host.clock.now(), self.id, index, shown, kind))

    def get_chat_history(self) -> list[Mapping[str, Any]]:
        """Return the messages for the next request, including the system prompt."""
        return list(self.history.refresh(self).view())

    def dialog_length(self) -> int:
        """Return the number of messages exchanged between the user and the agent."""
        return sum(1 for _ in dialog_of(self))

    def push_user_message(self, message: object) -> bool:
        """Send the job a user message; return whether that restarted a DONE job ("Jobs", Lifecycle)."""
        return self.inbox.push_user_message(message)

    def push_notification(self, handler: Any) -> None:
        """Deliver a completed subtask: immediately if the job is DONE, else at the next safe boundary (behaviour 9)."""
        self.inbox.push_notification(handler)

    def send_notification(self, message: str) -> None:
        """Deliver plain text at the next safe boundary; not available before 1.4.0."""
        self.inbox.send_notification(message)

    def add_locals(self, **values: object) -> None:
        """Bind names in the job's workspace."""
        self.keeping.predict_losses({}, values)
        self.py_env.update_locals(**values)
        if not self.py_env.in_block:
            self.keeping.drop()

    def add_error_handler(self, error_handler: Callable[..., object], context: object) -> None:
        """Register a cleanup handler that runs if the job dies ("Error Handling")."""
        self.error_handlers.add(error_handler, context)

    def add_error_handlers_from(self, parent_job: Job) -> None:
        """Copy the parent's current handlers ("Error Handling", Delegated Jobs)."""
        self.error_handlers.copy_from(parent_job.error_handlers)

    def notify_handlers(self, error: BaseException | None = None) -> None:
        """Clear the handler list, then run each handler once, oldest first ("Error Handling")."""
        self.error_handlers.notify(error)

    def spend(self, seconds: float) -> None:
        """Advance virtual time while the whole process is blocked, as when a tool calls `time.sleep`."""
        self.host.block(seconds)


# Python's own errors name stored classes with their module.
Job.__name__ = "statek.executors.job.Job"


reset_job = reset_context


def set_job(job: Job) -> Token[dict[str, Any] | None]:
    """Make `job` the current job, and return a token for `reset_job`."""
    return set_context({"job": job, "agent": job.job_def.agent})


@contextmanager
def job_context(job: Job) -> Iterator[None]:
    """Make `job` the current job inside the `with` statement."""
    with bound_context({"job": job, "agent": job.job_def.agent}):
        yield


def get_current_job() -> Job | None:
    """Return the executing job, or None if called outside a job."""
    job: Job | None = current("job")
    return job


def get_current_agent() -> Agent | None:
    """Return the executing job's agent, or None if called outside a job."""
    agent: Agent | None = current("agent")
    return agent
