"""A recorded chat with many turns and the timing of its replay, the same for every tool.

Also loaded by cassetter's interpreter, so it uses only the standard library and httpx2, not `statek_sim`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import httpx2

from bench.workload import Measurement

URL: Final = "https://api.openai.com/v1/chat/completions"
CASSETTER: Final = "0.16.1"

Opened = Callable[[Path], AbstractContextManager[object]]
"""Loads a cassette and answers HTTP requests from it inside the block."""

_RULES: Final = (
    "You keep the books of a small warehouse. Answer with Python code only. Look prices up with price_of(item), print "
    "what you find out, and finish with exit(summary). "
) * 4
_REPORT: Final = "The shelf was counted twice, and the numbers agree with those of the delivery note. "


def request_body(number: int) -> dict[str, Any]:
    """Return the body of request `number`, about 2.3 kB; each asks a different question."""
    return {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": _RULES},
            {"role": "user", "content": f"Order {number}. {_REPORT * 16}"},
        ],
        "temperature": 0.0,
    }


def reply_body(number: int) -> dict[str, Any]:
    """Return the body of the answer, about 1 kB."""
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": f"Order {number} is fine. {_REPORT * 8}"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 500, "completion_tokens": 150, "total_tokens": 650},
    }


def compact(value: object) -> str:
    """Return compact JSON, as sent by clients and providers."""
    return json.dumps(value, separators=(",", ":"))


def vcrpy_text(size: int) -> str:
    """Return a cassette in vcrpy's format, with bodies as JSON on one line."""
    return f"interactions:\n{''.join(map(_vcrpy_entry, range(size)))}version: 1\n"


def cassetter_text(size: int) -> str:
    """Return a cassette for cassetter, with requests as structured YAML; it can load 5,000 turns."""
    return f"version: 1\ninteractions:\n{''.join(map(_cassetter_entry, range(size)))}"


def _vcrpy_entry(number: int) -> str:
    return f"""\
- request:
    body: {json.dumps(compact(request_body(number)))}
    headers:
      Accept:
      - application/json
      Content-Type:
      - application/json
    method: POST
    uri: {URL}
  response:
    body:
      string: {json.dumps(compact(reply_body(number)))}
    headers:
      Content-Type:
      - application/json
      openai-version:
      - '2020-10-01'
    status:
      code: 200
      message: OK
"""


def _cassetter_entry(number: int) -> str:
    # It refuses files of more than 250,000 YAML nodes, so: no headers in the response, and its body as one text.
    return f"""\
  - request:
      method: POST
      uri: {URL}
      headers:
        content-type: [application/json]
      body:
        type: json
        content: {json.dumps(request_body(number))}
    response:
      status: 200
      headers: {{}}
      body:
        type: text
        content: {json.dumps(compact(reply_body(number)))}
    recorded_at: '2026-01-01T00:00:00Z'
"""


def measure(tool: str, opened: Opened, text: Callable[[int], str]) -> None:
    """Replay a cassette with the number of turns on the command line, and print the measurement.

    `extra`, in seconds: `load` is the time to open the cassette, `first` and `last` are the first and last fifth of the
    requests.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("size", type=int)
    size = parser.parse_args().size
    path = Path("talk.yaml").resolve()
    path.write_text(text(size), encoding="utf-8")
    bodies = [compact(request_body(number)).encode() for number in range(size)]
    started = perf_counter()
    with opened(path):
        load = perf_counter() - started
        times = list(_replayed(bodies))
    fifth = max(1, size // 5)
    measured = Measurement(
        workload=f"cassettes {tool}",
        size=size,
        seconds=sum(times),
        jobs=0,
        steps=size,
        bytes_sent=sum(map(len, bodies)),
        bytes_received=0,
        transcript=(),
        extra={
            "load": load,
            "first": sum(times[:fifth]),
            "last": sum(times[-fifth:]),
        },
    )
    print(measured.to_line())


def _replayed(bodies: list[bytes]) -> Iterator[float]:
    """Yield each request's seconds; a wrong answer ends the measurement."""
    headers = {"accept": "application/json", "content-type": "application/json"}
    with httpx2.Client() as client:
        for number, body in enumerate(bodies):
            started = perf_counter()
            answer = client.post(URL, content=body, headers=headers)
            yield perf_counter() - started
            if answer.json()["id"] != f"chatcmpl-{number}":
                raise SystemExit(f"request {number} was answered with {answer.text!r:.200}")
