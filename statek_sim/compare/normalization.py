"""Machine-dependent text, made the same by rule: ids of jobs, frames of tracebacks, addresses."""

from __future__ import annotations

import re
from typing import Final

from statek_sim.values import JSON

_CRASHED_JOB: Final = re.compile(r"\bJob \S+ failed with error: ")
# An object of the store, as Python shows it. Its id is always as long.
_STORED: Final = re.compile(r" instance uuid=[A-Z2-7]{24}>")
_ADDRESS: Final = re.compile(r" at 0x(?:[0-9a-f]+|\.\.\.)")
# In prompts, lines of the console may begin with `> `.
_QUOTE: Final = r"(?:> )?"
_HEAD: Final = r"Traceback \(most recent call last\):\n"
# The frames of a traceback are indented by two spaces at least; what follows them is the exception.
_FRAMES: Final = re.compile(rf"({_HEAD})(?:{_QUOTE}  .*\n|{_QUOTE}\n)*({_QUOTE})(?:\w+\.)*")
# A chain of exceptions is told oldest first, and the last one is the one that counts.
_CHAIN: Final = re.compile(
    rf"{_HEAD}(?:(?!{_QUOTE}Traceback \().*\n)*?{_QUOTE}\n{_QUOTE}"
    r"(?:During handling of the above exception, another exception occurred|"
    r"The above exception was the direct cause of the following exception)"
    rf":\n{_QUOTE}\n{_QUOTE}(?=Traceback \()"
)
# A future shows its private fields. No agent ever sees this text: printing a future waits for it.
_FUTURE: Final = re.compile(r"^(\w+)\(deps=.*\)$", re.DOTALL)
# An agent shows its private fields too, its prompt and its warmup among them.
_AGENT: Final = re.compile(
    r'\b((?:Dialog)?Agent)\((?:send_message=[^,]*,reminder=[^,]*,)?(role="[^"]*"),.*\)(?=$|, parent_job=)',
    re.DOTALL,
)
# A notification of a subtask shows when it came, by the wall clock.
_CAME: Final = re.compile(r'(SubTaskLogItem\([^\n]*?timestamp=)datetime\(\\?"[\d :-]*\\?"\)')
# Where Python's stack ended: in a call, in a comparison, while a value was printed.
_STACK_ENDED: Final = re.compile(
    r"(RecursionError: maximum recursion depth exceeded)(?: (?:while|in) [\w ]+)"
)
# Python's errors name a class of the store with its module, and the built-in world's is another one on each side.
_OWN_CLASS: Final = re.compile(r"\bstatek_sim\.(?:\w+\.)+(?=[A-Z])")
_MADE: Final = re.compile(r'\bJob\(created_at=datetime\("[^"]*"\)')
# A job shows its private fields and when it was created.
_JOB: Final = re.compile(r"^Job\(created_at=.*\)$", re.DOTALL)


def normal_text(text: str) -> str:
    """Return `text` without what differs from machine to machine."""
    if "Job " in text:
        text = _CRASHED_JOB.sub("Job (id) failed with error: ", text)
    if "Traceback (" in text:
        text = _FRAMES.sub(r"\1\2", _CHAIN.sub("", text))
    if " instance uuid=" in text:
        text = _STORED.sub(" instance uuid=(id)>", text)
    if "SubTaskLogItem(" in text:
        text = _CAME.sub(r"\1(moment)", text)
    if "Job(created_at=" in text:
        text = _MADE.sub("Job(created_at=(moment)", text)
    if "RecursionError: " in text:
        text = _STACK_ENDED.sub(r"\1", text)
    if "statek_sim" in text:
        text = _OWN_CLASS.sub("", text).replace("'statek_sim_published'", "'statek_sim'")
    return _ADDRESS.sub("", text) if " at 0x" in text else text


def normal_local(value: JSON) -> JSON:
    """Return a local's value, or that of an argument or result, without what no agent can see."""
    if isinstance(value, list):
        return [normal_local(item) for item in value]
    if isinstance(value, dict):
        return {key: normal_local(item) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    return _AGENT.sub(r"\1(\2)", _JOB.sub("<Object>", _FUTURE.sub(r"\1(a future)", value)))


def normal(value: JSON) -> JSON:
    """Return `value` with every text in it made normal."""
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, list):
        return [normal(item) for item in value]
    return {key: normal(item) for key, item in value.items()} if isinstance(value, dict) else value
