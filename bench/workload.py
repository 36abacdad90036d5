"""Both sides' work as plain data: prompts, replies, limits and sizes.

Also loaded by the peer's interpreter, so it uses only the standard library, not `statek_sim`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

ROLE: Final = "bench"
MODEL: Final = "gpt-4o"
PROFILE: Final = "1.4"
PEER_VERSION: Final = "1.4.2"

SYSTEM_PROMPT: Final = (
    "You keep the books of a small warehouse. Answer with Python code only. "
    "Look prices up with price_of(item), print what you find out, and finish with exit(summary)."
)

UNLIMITED: Final = 10**12
"""The value for every harness limit, high enough that no workload reaches it."""

PRICES: Final = {"apple": 3, "pear": 5, "plum": 2}
"""The prices that the tool `price_of` looks up."""

_LOOK_UP: Final = """\
order = {"apple": 4, "pear": 2}
prices = {name: price_of(name) for name in order}
print("prices", prices)"""

_ADD_UP: Final = """\
total = sum(order[name] * prices[name] for name in order)
if total > 20:
    note = "large"
else:
    note = "small"
print(f"total {total} {note}")"""

JOB_REPLIES: Final = (_LOOK_UP, _ADD_UP, "exit(note)")
"""Three turns in four steps, because the last reply runs in a separate step."""

WAIT_REPLIES: Final = (
    "ticket = next_ticket()\nprint(ticket)",
    "exit(ticket)",
)
"""The first reply's second statement waits; the job is SUSPENDED after two steps."""


def varied_replies(number: int) -> tuple[str, ...]:
    """Return job `number`'s three turns, with unique source text."""
    return tuple(f"{reply}  # order {number}" for reply in JOB_REPLIES)


def long_replies(turns: int) -> tuple[str, ...]:
    """Return `turns` replies of one job, each different and each printing one line; the last one exits."""
    first = 'total = 0\nprint("start", total)'
    middle = (f'total = total + {turn}\nprint("turn", {turn}, total)' for turn in range(2, turns))
    return (first, *middle, "exit(total)")


def reply_body(code: str) -> bytes:
    """Return the raw HTTP body of an OpenAI-style answer with `code` as its text."""
    answer = {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": code}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
    return json.dumps(answer).encode("utf-8")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What a process did and how long it took.

    Times are `time.perf_counter` seconds around the work only. `jobs`, `steps`, `bytes_sent`,
    `bytes_received` and `transcript` (the first job's console, then its exit status) describe the
    work: both sides must agree on them. `extra` contains workload-specific measurements.
    """

    workload: str
    size: int
    seconds: float
    jobs: int
    steps: int
    bytes_sent: int
    bytes_received: int
    transcript: tuple[str, ...]
    extra: dict[str, float]

    def work(self) -> dict[str, object]:
        """Return the values that two measurements must share to be comparable."""
        return {name: value for name, value in self.__dict__.items() if name not in ("seconds", "extra")}

    def to_line(self) -> str:
        """Return the measurement as a line of JSON."""
        return json.dumps(self.__dict__)

    @classmethod
    def from_line(cls, line: str) -> Measurement:
        """Parse a line written by `to_line`."""
        fields = json.loads(line)
        return cls(**{**fields, "transcript": tuple(fields["transcript"])})
