"""An instance over HTTP, for an agent in another process: its task, a fake LLM, its tools, and where the answer goes.

    GET  /task           {"task", "prompt", "tools"}; the tools in OpenAI's shape
    POST /v1/...         the fake LLM, in the formats of `statek-sim serve llm`
    POST /tools/NAME     the arguments as JSON; {"result": TEXT} or {"error": TEXT}
    POST /answer         {"answer": TEXT}, once

with ServedEval(instance, replies) as served:
    ...  # an agent works at served.url
verdict = judge(instance, served.record())
"""

from __future__ import annotations

import json
import threading
from types import TracebackType
from typing import Any, Final, Self

from statek_sim.errors import ProviderFailure
from statek_sim.evals.outcome import FINAL, Record
from statek_sim.evals.players import MOST_CALLS, TooManyCalls, assigned, recorded
from statek_sim.evals.scenario import Instance
from statek_sim.evals.world import ToolError
from statek_sim.providers.http_provider import HttpRequest, HttpTransport
from statek_sim.providers.script import ReplyFunction, computed
from statek_sim.server.exchange import Answer, Incoming, Whole
from statek_sim.server.llm import FakeLLM
from statek_sim.server.llm_server import RunningServer

_TOOLS: Final = "/tools/"
_OF_THE_LLM: Final = ("/v1", "/statek/")
_PLACES: Final = (
    "there are GET /task, POST /tools/NAME, POST /answer, and the fake LLM at POST /v1/chat/completions and its "
    "other addresses"
)
_OK: Final = 200
_TWICE: Final = 409


class ServedEval:
    """An instance at `url`, on loopback, inside the block. `replies` answer the requests of the agent's model.

    `llm` is the fake, with its journal; `record` is what came of the run so far.
    """

    def __init__(
        self,
        instance: Instance,
        replies: ReplyFunction,
        *,
        most_calls: int = MOST_CALLS,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.instance = instance
        self.llm = FakeLLM([computed(replies).forever()])
        self._assignment, self._calls = assigned(instance, most_calls=most_calls)
        self._lock = threading.Lock()
        self._answer: str | None = None
        self._asked = 0
        self._failure: str | None = None
        self._running = RunningServer(self._answered, host=host, port=port)
        self.url = self._running.url

    def __enter__(self) -> Self:
        """Start to listen."""
        self._running.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        self._running.stop()

    def record(self) -> Record:
        """Return what came of the run: the world's own log, and the answer if one was posted."""
        with self._lock:
            stop = (self._failure or "no answer was posted") if self._answer is None else FINAL
            return recorded(self.instance, self._answer, stop, self._calls, model_calls=self._asked)

    def ask(self, endpoint: str, transport: HttpTransport) -> None:
        """Have an agent that is a server itself work: POST it the task with this `url`; it returns `{"answer": TEXT}`.

        What it returns counts as if it had been posted to `/answer`. An endpoint that cannot be reached, says
        something else or takes too long has given no answer; `record` says why.
        """
        body = json.dumps({**self._task(), "url": self.url}).encode()
        headers = {"content-type": "application/json"}
        try:
            reply = transport.send(HttpRequest(method="POST", url=endpoint, headers=headers, body=body))
        except ProviderFailure as failure:
            self._failure = f"the endpoint gave no answer: {type(failure).__name__} {failure}".strip()
            return
        if reply.status != _OK or self._ended(reply.body).status not in (_OK, _TWICE):
            self._failure = f"the endpoint gave no answer: HTTP {reply.status} {reply.body[:80]!r}"

    def _answered(self, request: Incoming) -> Answer:
        path = request.target.partition("?")[0]
        if request.method == "GET" and path == "/task":
            return _json(200, self._task())
        if request.method == "POST" and path == "/answer":
            return self._ended(request.body)
        if request.method == "POST" and path.startswith(_TOOLS):
            return self._called(path.removeprefix(_TOOLS), request.body)
        if not path.startswith(_OF_THE_LLM):
            return _json(404, {"error": f"nothing at {request.method} {path}; {_PLACES}"})
        answer = self.llm.answer(request)
        with self._lock:
            self._asked += request.method == "POST"
        return answer

    def _task(self) -> dict[str, Any]:
        job = self._assignment
        return {"task": job.task, "prompt": job.prompt, "tools": [tool.spec for tool in job.tools.values()]}

    def _called(self, name: str, body: bytes) -> Answer:
        arguments = _object(body or b"{}")
        if arguments is None:
            return _json(400, {"error": f"the arguments of {name} are no JSON object"})
        with self._lock:
            if self._answer is not None:
                return _json(409, {"error": "the answer was posted; the run is over"})
            try:
                return _json(200, {"result": self._calls.call(name, arguments)})
            except ToolError as error:
                return _json(200, {"error": str(error)})
            except TooManyCalls as error:
                return _json(429, {"error": str(error)})

    def _ended(self, body: bytes) -> Whole:
        document = _object(body)
        answer = None if document is None else document.get("answer")
        if not isinstance(answer, str):
            return _json(400, {"error": 'expected {"answer": TEXT}'})
        with self._lock:
            if self._answer is not None:
                return _json(_TWICE, {"error": "an answer was posted before"})
            self._answer = answer
        return _json(200, {"ok": True})


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _json(status: int, value: object) -> Whole:
    return Whole(status=status, body=json.dumps(value, ensure_ascii=False).encode())
