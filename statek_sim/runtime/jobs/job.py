"""Job: a durable Python workspace for one unit of agent work (001)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from statek_sim import trace as events
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.agents.job_def import JobDef, JobDefError
from statek_sim.runtime.dialogs.dialog import dialog_of
from statek_sim.runtime.dialogs.history import HistoryProjection
from statek_sim.runtime.jobs.difficulty import Difficulty
from statek_sim.runtime.jobs.job_log import JobLog
from statek_sim.runtime.jobs.notifications import Inbox
from statek_sim.runtime.state.access import missing
from statek_sim.runtime.state.calls import CodeBlock
from statek_sim.runtime.state.chat_log import (
    ChatItem,
    LLM_LogItem,
    ReminderLogItem,
    SubTaskLogItem,
    UserLogItem,
)
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.counters import LLM_Usage
from statek_sim.runtime.state.error_handlers import HandlerList
from statek_sim.runtime.state.futures import FutureResult
from statek_sim.runtime.state.host import Host
from statek_sim.runtime.state.pyenv import ErrorKind, PyEnv
from statek_sim.runtime.state.signals import Signal
from statek_sim.runtime.state.status import JobStatus, advance
from statek_sim.runtime.stored.attributes import attribute, ended_in
from statek_sim.runtime.stored.block_end import FORESEEN_RELEASE, Remark, foresee, remark_of
from statek_sim.runtime.stored.containers import Kept, kept
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.values import Message

DIALOG_STYLES: Final = frozenset({ChatStyle.MD_DIALOG, ChatStyle.DIRECT})


class Job:
    """One durable unit of work. Created by `Runtime.create_job`, never directly.

    Fields carry STATEK's names (001). `stop_reason` says why the last unit ended: exit, final, the name of a
    limit, crash, warmup or contained.
    """

    __slots__ = (
        "__weakref__",
        "_difficulty",
        "_log",
        "_status",
        "awaited_result",
        "chat_log",
        "chat_style",
        "counters",
        "created_at",
        "done_signal",
        "error",
        "error_handlers",
        "history",
        "host",
        "id",
        "inbox",
        "job_def",
        "llm_calls",
        "next_instr_num",
        "num_completions",
        "parent_job",
        "py_env",
        "remarked",
        "sent",
        "steps",
        "stop_reason",
        "tool_via",
        "usage",
        "warmup_block_num",
    )

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Refuse an attribute that there is not, in the words of the store."""
            raise missing(self, name)

    def __init__(
        self,
        host: Host,
        job_id: str,
        job_def: JobDef,
        history: HistoryProjection,
        parent_job: Job | None = None,
    ) -> None:
        self.host = host
        self.id = job_id
        self.job_def = job_def
        self.parent_job = parent_job
        self.chat_style = job_def.chat_style if job_def.chat_style is not None else host.default_chat_style
        self._status = JobStatus.READY
        self.py_env = PyEnv(stores=host.profile.storage == "dbzero")
        self.remarked: set[str] = set()
        self._log = JobLog(host.profile)
        self.chat_log = self._log.items
        self.awaited_result: FutureResult | None = None
        self.next_instr_num: int | tuple[int, object] | str | None = None
        self.warmup_block_num = 0
        self.error: JobDefError | None = None
        self.error_handlers = HandlerList(self)
        self.usage = LLM_Usage()
        self.num_completions: int | None = None
        self.created_at = host.timestamp()
        self.counters = self._log.counters
        self._difficulty = Difficulty(job_def, host.default_difficulty)
        self.inbox = Inbox(self)
        self.history = history
        self.sent: Sequence[Message] = ()
        self.done_signal = Signal()
        self.stop_reason: str | None = None
        self.steps = 0
        self.llm_calls = 0
        self.tool_via = "code"

    def __repr__(self) -> str:
        return f"Job({self.id!r}, {self.agent.role!r}, {self.status})"

    @property
    def status(self) -> JobStatus:
        """Where the job is in its life; only `move_to` changes it."""
        return self._status

    @property
    def agent(self) -> Agent:
        """The agent that does the work."""
        return self.job_def.agent

    @property
    def signal(self) -> Signal:
        """Fires when the job becomes DONE, so that futures may depend on a job."""
        return self.done_signal

    # -- in the words of a report (`statek_app` has the same) --------------------------------------------------

    @property
    def stop(self) -> str | None:
        """Why the last unit ended: `stop_reason`."""
        return self.stop_reason

    @property
    def exit(self) -> object:
        """What `exit` was given, None without one: `py_env.exit_status`."""
        return self.py_env.exit_status

    @property
    def console(self) -> list[str]:
        """What the job has printed, entry by entry: `py_env.console`."""
        return self.py_env.console

    @property
    def locals(self) -> dict[str, object]:
        """The variables of its workspace: `py_env.local_state`."""
        return self.py_env.local_state

    @property
    def trace(self) -> events.JobTrace:
        """The events of this job."""
        return self.host.trace.of_job(self.id)

    # -- lifecycle ---------------------------------------------------------------------------------------------

    def move_to(self, target: JobStatus) -> None:
        """Change the status along the table; staying where it is changes nothing."""
        if target is self._status:
            return
        old, self._status = self._status, advance(self._status, target, job_id=self.id)
        self.host.trace.add(events.StatusChanged(self.host.clock.now(), self.id, old, target))
        self.host.job_changed(self)
        if target is JobStatus.DONE:
            self.done_signal.fire()

    def finish(self, reason: str, detail: str | None = None) -> None:
        """Mark the current unit DONE because of `reason`."""
        self.stop_reason = reason
        self.move_to(JobStatus.DONE)
        told = None if detail is None else without_addresses(detail)
        self.host.trace.add(events.JobStopped(self.host.clock.now(), self.id, reason, told))

    def reopen(self, by: str) -> None:
        """Start the next unit of a DONE job."""
        self.py_env.exit_status = None
        self.stop_reason = None
        self.move_to(JobStatus.STARTED)
        self.host.trace.add(events.Reactivated(self.host.clock.now(), self.id, by, self.num_completions))

    # -- what the harness reads --------------------------------------------------------------------------------

    @property
    def num_turns(self) -> int:
        """LLM turns, the placeholders of reactivations included (behaviour 4.2)."""
        return self.counters.turns

    @property
    def exception_count(self) -> int:
        """Exceptions of LLM turns: code and tools, warmup excluded (000)."""
        return self.counters.exceptions

    @property
    def max_consecutive_exceptions(self) -> int:
        """The longest streak of failing LLM turns (000)."""
        return self.counters.longest_streak

    @property
    def approx_token_usage(self) -> int:
        """`(bytes sent + bytes received) // 4` over all answered requests (000)."""
        return self.usage.approx_tokens

    @property
    def measured_token_usage(self) -> int:
        """Prompts and completions of all answered requests, by the tokenizer; STATEK has no such count."""
        return self.usage.total_measured_tokens

    @property
    def reported_token_usage(self) -> int:
        """Prompts and completions of all answered requests, as the provider reported them."""
        return self.usage.total_input_tokens + self.usage.total_output_tokens

    @property
    def difficulty_token_extension(self) -> int:
        """Tokens added to the limit by rises of the difficulty (from 1.4.1)."""
        return self._difficulty.token_extension

    # -- chat log ----------------------------------------------------------------------------------------------

    def log(self, item: ChatItem) -> None:
        """Append to the chat log."""
        self._log.add(item)

    @property
    def last_item(self) -> ChatItem | None:
        """The newest chat log item."""
        return self.chat_log[-1] if self.chat_log else None

    @property
    def last_response(self) -> str | CodeBlock | None:
        """The newest item's response if it is an LLM turn, else None (behaviour 2)."""
        last = self.last_item
        return last.llm_resp if isinstance(last, LLM_LogItem) else None

    @property
    def console_pos(self) -> int:
        """The length of the console."""
        return len(self.py_env.console)

    def console_append(self, text: str, error: ErrorKind | None = None) -> None:
        """Append one console entry, as an error of `error` kind if given."""
        index, shown = self._log.print(self.py_env, text, error)
        kind = None if error is None else error.value
        self.host.trace.add(events.ConsoleLine(self.host.clock.now(), self.id, index, shown, kind))

    def check_newest_item(self) -> int:
        """Return the console position of the chat log's newest item; 0 for a user's message, which has none."""
        return self._log.newest_position()

    def get_chat_history(self) -> list[Mapping[str, Any]]:
        """Return the messages that the next request would carry, system prompt included."""
        return list(self.history.refresh(self).view())

    def dialog_length(self) -> int:
        """Return how many messages user and agent have exchanged."""
        return sum(1 for _ in dialog_of(self))

    # -- messages, notifications -------------------------------------------------------------------------------

    def push_user_message(self, message: object) -> bool:
        """Give the job a user message; return whether that started a DONE job again (001, Lifecycle).

        Objects become text through the agent's `message_adapter` or `str`. A reactivation counts one completion
        and one placeholder turn.
        """
        adapter = None if isinstance(message, str) else self.agent.get_adapter("message_adapter")
        text = str(message if adapter is None else adapter(message))
        dialog = self.chat_style in DIALOG_STYLES
        if dialog and self.chat_log:
            stored = Kept(self.keeps_from_birth("user message", text, "UserLogItem"), None)
        else:
            stored = self.keeps("user message", text)
        text = stored.value
        self.host.trace.add(events.UserMessage(self.host.clock.now(), self.id, text))
        if dialog:
            if not self.chat_log:
                self.history.pushed(0)
            self.log(UserLogItem(text, self.host.timestamp()) if self.chat_log else text)
        else:
            self.py_env.push(self.console_pos, text)
            self.history.pushed(self.console_pos)
        if stored.error is not None:
            raise stored.error
        restarted = self.status is JobStatus.DONE
        if restarted:
            self.num_completions = (self.num_completions or 0) + 1
            self.reopen("message")
            self.log(LLM_LogItem(self.console_pos, self.host.timestamp(), None))
        if self.host.profile.latest_input_is_bound:
            self.bind_critical_error_context(message)
        return restarted

    def push_notification(self, handler: Any) -> None:
        """Deliver a completed subtask: at once when DONE, else at the next safe boundary (behaviour 9)."""
        if not handler.is_completed:
            raise RuntimeError("Subtask handler must be completed before notification")
        result = None if handler.failed else str(handler)
        self.inbox.deliver(SubTaskLogItem(self.console_pos, result, self.host.timestamp(), handler))

    def send_notification(self, message: str) -> None:
        """Deliver plain text at the next safe boundary; does not exist before 1.4.0."""
        if not self.host.profile.plain_notifications:
            raise AttributeError(
                f"'Job' object has no attribute 'send_notification' in {self.host.profile.name}"
            )
        self.inbox.deliver_text(self.keeps_from_birth("notification", message, "NotificationLogItem"))

    # -- workspace ---------------------------------------------------------------------------------------------

    def add_locals(self, **values: object) -> None:
        """Bind names in the job's workspace."""
        if not self.py_env.stores:
            self.remark(foresee({}, values), FORESEEN_RELEASE)
        self.py_env.update_locals(**values)

    def remark(self, remarks: Iterable[Remark], release: str | None = None) -> None:
        """Tell what the store did to names, or would do in `release`: then once for each name."""
        for found in remarks:
            if release is not None and found.name in self.remarked:
                continue
            self.remarked.add(found.name)
            at = self.host.clock.now()
            self.host.trace.add(
                events.StoreRemark(at, self.id, found.name, found.change, found.reason, release)
            )

    def keeps(self, name: str, value: Any) -> Kept:
        """Return what an attribute in the store keeps of a value, and tell of what is lost under `name`.

        What the store refuses raises its error; where nothing is stored the value stays as it is.
        """
        found, stores = kept(value), self.py_env.stores
        told = remark_of(name, found)
        if told is not None:
            self.remark([told], None if stores else FORESEEN_RELEASE)
        return attribute(value, found) if stores else Kept(value, None)

    def keeps_from_birth(self, name: str, value: Any, owner: str) -> Any:
        """Return what an object of the class `owner` keeps of a value that it is made with, as `keeps` does.

        Damage is Python's SystemError there.
        """
        found = self.keeps(name, value)
        if found.error is not None:
            raise ended_in(f"{owner}.__init__") from found.error
        return found.value

    def panic(self) -> None:
        """Raise the difficulty one level; from 1.4.1 that extends the token limit by the usage so far."""
        extends = self.host.profile.difficulty_extends_tokens
        level = self._difficulty.rise(self.approx_token_usage if extends else None, len(self.chat_log))
        self.host.trace.add(
            events.DifficultyRaised(self.host.clock.now(), self.id, level, self.approx_token_usage)
        )

    @property
    def difficulty(self) -> str:
        """LOW, MEDIUM or HIGH."""
        return self._difficulty.level

    @property
    def raised_at(self) -> list[int]:
        """Lengths of the chat log at rises of the difficulty: from 1.4.1 each is an item of STATEK's log."""
        return self._difficulty.raised_at

    # -- error handlers ----------------------------------------------------------------------------------------

    def add_error_handler(self, error_handler: Callable[..., object], context: object) -> None:
        """Register cleanup that runs if the job dies (003)."""
        self.error_handlers.add(error_handler, context)

    def add_error_handlers_from(self, parent_job: Job) -> None:
        """Copy the parent's handlers as they are now (003, Delegated Jobs)."""
        self.error_handlers.copy_from(parent_job.error_handlers)

    def notify_handlers(self, error: BaseException | None = None) -> None:
        """Run every registered handler once, oldest first, after clearing the list (003)."""
        self.error_handlers.notify(error)

    def bind_critical_error_context(self, context: object) -> None:
        """Bind the latest input to the agent's `critical_error_handler`, replacing the previous one (1.3.1)."""
        adapter = self.agent.get_adapter("critical_error_handler")
        self.error_handlers.bind_latest_input(adapter, context)

    # -- what tools report -------------------------------------------------------------------------------------

    def spend(self, seconds: float) -> None:
        """Let virtual seconds pass in which the whole process stands still: `time.sleep` in a tool."""
        self.host.block(seconds)

    def remind(self, reminder: Any) -> bool:
        """Let a reminder keep the dialog going instead of ending it; return whether it fired."""
        if not reminder.fire_ready(self):
            return False
        self.log(ReminderLogItem(self.console_pos, self.host.timestamp(), reminder))
        self.console_append(reminder.text)
        return True
