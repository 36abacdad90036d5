"""The fake LLM: a function from HTTP request to answer, with a script, faults and a journal behind it.

Models, the journal and refusals are here as well: what asks for no reply, embedding or count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from statek_sim.clock import EPOCH
from statek_sim.errors import BadInput
from statek_sim.providers.delivery import Styles, manner
from statek_sim.providers.mismatch import PendingReply
from statek_sim.providers.protocol import ChatStyleName
from statek_sim.providers.scripted import Script
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.reply import compact
from statek_sim.providers.wire.request import FormatName
from statek_sim.server.exchange import ASKING, JOURNAL, UNUSED, Answer, Incoming, Place, Route, Whole, route
from statek_sim.server.fault import FaultRule
from statek_sim.server.journal import Journal
from statek_sim.server.parsed_request import model_tokenizer
from statek_sim.server.play import Play
from statek_sim.server.rendering import Pacing, http_error
from statek_sim.server.script_lookup import PlayedScript
from statek_sim.values import JSON

DEFAULT_MODELS: Final = ("gpt-4o",)


class FakeLLM:
    """Answers chat requests from a script, in OpenAI's two formats, Anthropic's and Gemini's, streaming and not.

    Embeddings and counts of tokens come from the text, unless the script has them.

    `script` and `styles` are those of `ScriptedLLM`; a script by role goes by the header `x-statek-agent`, or else by
    the model. The job is what `x-statek-job` says, or `http`; the turn is one more than the model has spoken in the
    request; the attempt follows the SDKs' retry header. Virtual time is what the answers so far took.

    Usage is counted with the model's tokenizer for replies that do not say theirs, unless `count_usage` is off.
    `ignored` are parameters that are taken without heed; others that the server cannot honour are refused (400).
    `faults` strike requests by position, rate or condition. `pacing` says how much real time latencies take.
    A request without an answer gets status 422 with the nearest script entry, and fails `check_finished`.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        styles: Styles | ChatStyleName | None = None,
        faults: Sequence[FaultRule] = (),
        models: Sequence[str] = DEFAULT_MODELS,
        count_usage: bool = True,
        pacing: Pacing | None = None,
        ignored: Collection[str] = (),
    ) -> None:
        self._lock = threading.Lock()
        self._manner = manner(styles, None)
        self._pacing = pacing or Pacing()
        self._count_usage = count_usage
        self._models = tuple(models)
        self._ignored = frozenset(ignored)
        self.play(script, faults=faults)

    def play(
        self,
        script: Script,
        *,
        faults: Sequence[FaultRule] = (),
        styles: Styles | ChatStyleName | None = None,
        ignored: Collection[str] | None = None,
    ) -> None:
        """Start anew with this script and these faults; the journal and virtual time start anew too.

        `styles` and `ignored`, if they are said, replace those of before.
        """
        for rule in faults:
            if not isinstance(rule, FaultRule):
                raise BadInput(
                    f"faults has {rule!r}; expected a rule that says which requests it strikes: "
                    f"FaultRule(fault={rule!r}, positions=(1,))"
                )
        spoken = self._manner if styles is None else manner(styles, None)
        played = PlayedScript(script, count_usage=self._count_usage)
        with self._lock:
            self._manner = spoken
            if ignored is not None:
                self._ignored = frozenset(ignored)
            self._play = Play(played, faults, spoken, self._pacing, self._ignored)

    @property
    def journal(self) -> Journal:
        """What was asked since the play began."""
        return self._play.journal

    def warm_up(self) -> None:
        """Load the vocabularies that usage is counted with, so that the first request need not wait for them."""
        if self._count_usage:
            for model in self._models:
                model_tokenizer(model).count("warm")

    def answer(self, request: Incoming) -> Answer:
        """Answer one HTTP request."""
        found = route(request.method, request.target)
        if found.place in ASKING:
            with self._lock:
                return self._play.ask(request, found)
        return fallback_answer(request, found, self._models, self.journal, self.unused)

    def unused(self) -> list[PendingReply]:
        """Return the replies that were given too seldom; for one that repeats forever, once is enough."""
        with self._lock:
            return self._play.script.unused()

    def check_finished(self) -> None:
        """Raise when a request found no reply (`UnmatchedRequest`) or a reply or fault no request (`UnusedReplies`)."""
        with self._lock:
            self._play.check_finished()


def models_body(wire: FormatName, models: Sequence[str]) -> dict[str, JSON]:
    """Return the body of `/v1/models` (`/v1beta/models`)."""
    listed: list[JSON] = [model_body(wire, model) for model in models]
    if wire == "gemini":
        return {"models": listed}
    if wire == "anthropic":
        first, last = (models[0], models[-1]) if models else (None, None)
        return {"data": listed, "has_more": False, "first_id": first, "last_id": last}
    return {"object": "list", "data": listed}


def model_body(wire: FormatName, model: str) -> dict[str, JSON]:
    """Return the body of `/v1/models/MODEL`."""
    if wire == "gemini":
        methods: list[JSON] = ["generateContent", "streamGenerateContent"]
        return {"name": f"models/{model}", "displayName": model, "supportedGenerationMethods": methods}
    if wire == "anthropic":
        moment = EPOCH.isoformat().replace("+00:00", "Z")
        return {"type": "model", "id": model, "display_name": model, "created_at": moment}
    return {"id": model, "object": "model", "created": int(EPOCH.timestamp()), "owned_by": "statek-sim"}


def fallback_answer(
    request: Incoming,
    found: Route,
    models: Sequence[str],
    journal: Journal,
    unused: Callable[[], Sequence[PendingReply]],
) -> Answer:
    """Return the answer; what is posted to a place that is not there is a problem of the journal's."""
    wire = FORMATS["anthropic" if "anthropic-version" in request.headers else found.wire]
    match found.place:
        case Place.MODELS:
            return Whole(status=200, body=compact(models_body(wire.NAME, models)).encode())
        case Place.MODEL if found.name in models:
            return Whole(status=200, body=compact(model_body(wire.NAME, found.name)).encode())
        case Place.JOURNAL:
            return _page([entry.record() for entry in journal.entries()])
        case Place.UNUSED:
            return _page([str(reply) for reply in unused()])
        case _:
            status, message = _refusal(request.method, found, models)
            if request.method == "POST":
                # A client that asks for what is not there fails its test, whatever it makes of the answer.
                journal.add_problem(f"POST {found.path}: {message}")
            refused = http_error(wire, status, message=message)
            return replace(refused, headers=(("allow", found.allowed),)) if found.allowed else refused


def _page(items: Sequence[JSON]) -> Whole:
    return Whole(status=200, body=compact(list(items)).encode())


def _refusal(method: str, found: Route, models: Sequence[str]) -> tuple[int, str]:
    """Return the status and the words for a request that leads nowhere."""
    match found.place:
        case Place.MODEL:
            return 404, f"no model {found.name!r}; there are {', '.join(models)}"
        case Place.WRONG_METHOD:
            return 405, f"{method} is not what {found.path} is for"
        case Place.NO_EVENTS:
            return 400, f"{found.path} streams events only: add ?alt=sse"
        case _:
            return 404, (
                f"nothing at {found.path}; there are /v1/chat/completions, /v1/responses, "
                "/v1/embeddings, "
                "/v1/messages, /v1/messages/count_tokens, /v1beta/models/MODEL:generateContent (and :countTokens, "
                f":embedContent), /v1/models, {JOURNAL} and {UNUSED}"
            )
