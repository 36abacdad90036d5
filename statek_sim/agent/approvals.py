"""Questions for a person, each of which suspends the run until it is answered, refused or expired.

Tools may ask questions (`Tool.asks`), and gates may ask before admitting a call (`Approvals`).
"""

from __future__ import annotations

import re
import string
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NoReturn

from statek_sim import trace as events
from statek_sim.agent.effects import (
    Answer,
    Ask,
    AskPerson,
    CommitPoint,
    Effect,
    PersonSaid,
    Question,
    Receipt,
    ToolCall,
    ToolOutcome,
    ToolStatus,
)
from statek_sim.agent.run_state import RunState
from statek_sim.agent.tools.tool import Tool
from statek_sim.errors import PartBroke
from statek_sim.values import JSON

if TYPE_CHECKING:
    from collections.abc import Callable


EXPIRED: Final = PersonSaid("expired")
"""The result of a question that nobody answered before the deadline."""

LEAVE: Final = frozenset({"y", "yes"})
"""Replies that approve a call, ignoring case; any other reply rejects it and is used as the reason."""

NO: Final = frozenset({"n", "no", "false"})
"""Replies that reject a call even in a `PersonSaid` of kind `answered`, since nobody would use them to approve one."""

_AROUND: Final = string.whitespace + ".,!\"'"
"""Characters that are ignored before and after a refusal."""


def word_of(question: Question, given: object) -> PersonSaid:
    """Convert the value returned by a `person` callable to a `PersonSaid`.

    A string answers a question. It approves a call only if it is one of `LEAVE`, so that a misunderstood answer never
    allows a call. True approves the call and False rejects it. A `PersonSaid` is returned unchanged, except that an
    answer whose text is in `NO` becomes a refusal. Raises `PartBroke` for anything else, such as None or a coroutine.
    """
    if isinstance(given, PersonSaid):
        no = question.confirms and given.kind == "answered" and given.text.strip(_AROUND).lower() in NO
        return PersonSaid("refused", given.text.strip()) if no else given
    if isinstance(given, bool) and question.confirms:
        return PersonSaid("answered", "yes") if given else PersonSaid("refused")
    if not isinstance(given, str | int | float | Decimal):
        what = "None" if given is None else type(given).__name__
        raise PartBroke(f"{question.text!r}: the person returned {what}, expected a string or a PersonSaid")
    text = str(given)
    if question.confirms and text.strip().lower() not in LEAVE:
        return PersonSaid("refused", text.strip())
    return PersonSaid("answered", text)


@dataclass(frozen=True, slots=True)
class Suspended:
    """The questions that were open when a run was committed, and the answers received since, keyed by token."""

    questions: Sequence[Question]
    answers: Mapping[str, PersonSaid]


def suspended(
    pending: Mapping[str, Any], receipts: Iterable[Receipt], *, committed: float, now: float
) -> Suspended:
    """Return the questions that a committed run is still waiting for; their deadlines are unchanged."""
    questions = [Question(**question) for question in pending.get("questions", ())]
    left = [
        question
        if question.seconds is None
        else replace(question, seconds=max(0.0, committed + question.seconds - now))
        for question in questions
    ]
    tokens = {question.token for question in questions}
    answers = {
        receipt.key: PersonSaid(receipt.status, receipt.text)  # type: ignore[arg-type]  # the kind it was made of
        for receipt in receipts
        if receipt.key in tokens
    }
    return Suspended(left, answers)


Asking = Generator[Effect, Answer, Sequence[PersonSaid]]


def ask_people(
    run: RunState,
    asks: Sequence[tuple[str, Ask]],
    pending: Callable[[], Mapping[str, object]],
    heard: Callable[[int, PersonSaid], None] | None = None,
) -> Asking:
    """Ask all questions together. The run is SUSPENDED until the last one is answered, refused or expired.

    `asks` pairs each tool name with the question about its call. `heard` is called with each question's position and
    result once it is settled. The run is committed first, together with the `pending` state, so that it can be resumed
    while it waits.
    """
    questions = tuple([_question(run, tool, ask) for tool, ask in asks])
    for question in questions:
        deadline = None if question.seconds is None else run.now() + question.seconds
        run.tell(
            events.PersonAsked(run.now(), run.job, question.token, question.tool, question.text, deadline)
        )
    run.move("SUSPENDED")
    open_ = {"questions": [asdict(question) for question in questions]}
    yield from run.commit(CommitPoint.SUSPENDED, questions, pending=lambda: {**pending(), **open_})
    return (yield from wait_for(run, Suspended(questions, {}), heard))


def wait_for(
    run: RunState, open_: Suspended, heard: Callable[[int, PersonSaid], None] | None = None
) -> Asking:
    """Wait until all open questions are settled, calling `heard` with the position and result of each."""
    questions, settled = open_.questions, dict[int, PersonSaid]()
    for position, question in enumerate(questions):
        if question.token in open_.answers:
            settled[position] = open_.answers[question.token]
            if heard is not None:
                heard(position, settled[position])
    left = [position for position in range(len(questions)) if position not in settled]

    def answered(at: int, answer: PersonSaid) -> None:
        token = questions[left[at]].token
        run.tell(events.PersonAnswered(run.now(), run.job, token, answer.kind, answer.text))
        if heard is not None:
            heard(left[at], answer)

    if left:
        answer = yield AskPerson([questions[position] for position in left], answered)
        assert isinstance(answer, Sequence), "a driver must answer AskPerson with the replies"
        new = [settling for settling in answer if isinstance(settling, PersonSaid)]
        settled.update(zip(left, new, strict=True))
    run.move("STARTED")
    return [settled[position] for position in range(len(questions))]


def _question(run: RunState, tool: str, ask: Ask) -> Question:
    run.asked += 1
    return Question(
        token=f"{run.job}:{run.asked}",
        job=run.job,
        tool=tool,
        text=ask.text,
        seconds=ask.seconds,
        confirms=ask.confirms,
    )


def filled(ask: Ask, call: ToolCall) -> Ask:
    """Return a tool's question with placeholders such as `{city}` replaced by the call's arguments."""
    words = {
        f"{{{name}}}": value if isinstance(value, str) else repr(value)
        for name, value in call.arguments.items()
    }
    if not words:
        return ask
    # Replace all in one pass: a value may contain braces itself, and a second pass would change the question.
    to_fill = re.compile("|".join(map(re.escape, words)))
    return replace(ask, text=to_fill.sub(lambda found: words[found[0]], ask.text))


def question_about(ask: Ask, call: ToolCall) -> Ask:
    """Return the question to ask a person about a call: the filled-in template or, if empty, a default question."""
    if ask.text:
        return filled(ask, call)
    arguments = ", ".join([f"{key}={value!r}" for key, value in call.arguments.items()])
    return replace(ask, text=f"May {call.name}({arguments}) be called?")


def outcome_of_asking(answer: PersonSaid, ask: Ask) -> ToolOutcome:
    """Return the outcome of a tool that asks a person, given the person's reply."""
    match answer.kind:
        case "answered":
            return ToolOutcome(ToolStatus.RETURNED, answer.text)
        case "refused":
            return ToolOutcome(ToolStatus.RAISED, why_not(answer, ask))
        case "expired":
            return ToolOutcome(ToolStatus.TIMED_OUT, why_not(answer, ask))


def why_not(answer: PersonSaid, ask: Ask) -> str:
    """Return the message shown to the model if a person refused a question or did not answer it."""
    if answer.kind == "expired":
        within = "" if ask.seconds is None else f" within {ask.seconds:g} seconds"
        return f"nobody answered{within}: {ask.text}"
    return f"a person refused: {answer.text}" if answer.text else "a person refused"


def tool_that_asks(
    name: str = "ask_person",
    description: str = "Ask the person you work for. Use it when something only they can know is missing.",
    *,
    question: str = "{question}",
    parameters: Mapping[str, JSON] | None = None,
    seconds: float | None = None,
) -> Tool:
    """Return a tool that asks a person; `question` may contain placeholders for arguments, such as `{city}`.

    The person's answer is the call's result. A refusal, or no answer within `seconds`, is an error.
    """
    schema: Mapping[str, JSON] = parameters or {
        "type": "object",
        "properties": {"question": {"type": "string", "description": "What you want to know."}},
        "required": ["question"],
    }
    return Tool(
        name=name,
        description=description,
        parameters=schema,
        run=_never_run,
        asks=Ask(text=question, seconds=seconds),
    )


def _never_run(**arguments: Any) -> NoReturn:
    raise AssertionError("a tool that asks a person has no code to run")


class Approvals:
    """A gate that asks a person before each call to these tools; put it last among the gates.

    A question may contain placeholders for arguments, such as `{city}`. If it is empty, the person is asked whether the
    call may be made.
    """

    stateless: Final = True

    def __init__(self, asks: Mapping[str, Ask]) -> None:
        self._asks = dict(asks)

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        """Return the question if the tool requires one."""
        ask = self._asks.get(call.name)
        if ask is None:
            return None
        return replace(question_about(ask, call), confirms=True)

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Do nothing: the gate has no state, because a person is asked before each call."""

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Do nothing: the gate has no state."""
