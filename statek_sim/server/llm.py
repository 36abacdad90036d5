"""The fake LLM: answers HTTP requests from a script, injects faults, and keeps a journal.

It also serves lists of models, the journal and the unused replies.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from statek_sim.clock import EPOCH
from statek_sim.errors import BadInput
from statek_sim.providers.delivery import Styles, manner
from statek_sim.providers.mismatch import Entry
from statek_sim.providers.protocol import ChatStyleName
from statek_sim.providers.script import Reply
from statek_sim.providers.scripted import Script
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.reply import compact
from statek_sim.providers.wire.request import FormatName
from statek_sim.server.exchange import (
    JOURNAL,
    SCRIPTED_PLACES,
    UNUSED,
    Answer,
    Incoming,
    Place,
    Route,
    Whole,
    route,
)
from statek_sim.server.fault import FaultRule
from statek_sim.server.journal import Journal
from statek_sim.server.parsed_request import model_tokenizer
from statek_sim.server.play import Play
from statek_sim.server.rendering import Pacing, http_error
from statek_sim.server.script_lookup import PlayedScript
from statek_sim.values import JSON, items_of

DEFAULT_MODELS: Final = ("gpt-4o",)


class FakeLLM:
    """Answers HTTP requests from a script in the OpenAI, Anthropic and Gemini formats, with and without streaming.

    The OpenAI formats are Chat Completions and Responses. Embeddings and token counts are computed from the text unless
    they are scripted.

    `script` and `styles` are as in `ScriptedLLM`. A request's role is its `x-statek-agent` header, or else its model.
    The job is taken from the `x-statek-job` header and defaults to `http`. The turn is 1 plus the number of model
    messages in the request, and the attempt is taken from the SDK's retry header. Virtual time is the sum of all
    latencies so far.

    Unless `count_usage` is off, a reply that reports no usage gets token counts from the model's tokenizer. `ignored`
    lists unsupported parameters to ignore; any others are answered with 400. `faults` affect requests by position, rate
    or condition. `pacing` converts latencies to real time. A request that no reply matches is answered with 422 and the
    nearest script entry, and makes `check_finished` fail.
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
        self._models = items_of("models", models)
        self._ignored = frozenset(items_of("ignored", ignored))
        self.play(script, faults=faults)

    def play(
        self,
        script: Script,
        *,
        faults: Sequence[FaultRule] = (),
        styles: Styles | ChatStyleName | None = None,
        ignored: Collection[str] | None = None,
    ) -> None:
        """Switch to this script and these faults, clear the journal, and reset virtual time to 0.

        `styles` and `ignored`, if given, replace the previous values.
        """
        rules = items_of("faults", faults)
        for rule in rules:
            if isinstance(rule, Reply):
                raise BadInput("faults contains a reply; replies such as fault(429) belong in the script")
            if not isinstance(rule, FaultRule):
                raise BadInput(
                    f"faults contains {rule!r}; expected a rule that selects requests: "
                    f"FaultRule(fault={rule!r}, positions=(1,))"
                )
        spoken = self._manner if styles is None else manner(styles, None)
        played = PlayedScript(script, count_usage=self._count_usage)
        with self._lock:
            self._manner = spoken
            if ignored is not None:
                self._ignored = frozenset(items_of("ignored", ignored))
            self._play = Play(played, rules, spoken, self._pacing, self._ignored)

    @property
    def journal(self) -> Journal:
        """The journal for the current script."""
        return self._play.journal

    def warm_up(self) -> None:
        """Load the tokenizers for usage counts in advance, so that the first request does not have to wait."""
        if self._count_usage:
            for model in self._models:
                model_tokenizer(model).count("warm")

    def answer(self, request: Incoming) -> Answer:
        """Return the response to one HTTP request."""
        found = route(request.method, request.target)
        if found.place in SCRIPTED_PLACES:
            with self._lock:
                return self._play.ask(request, found)
        return self._other_answer(request, found)

    def _other_answer(self, request: Incoming, found: Route) -> Answer:
        """Return the response to a request that needs no reply; record a POST to an unknown endpoint as a problem."""
        wire = FORMATS["anthropic" if "anthropic-version" in request.headers else found.wire]
        match found.place:
            case Place.MODELS:
                return _page(models_body(wire.NAME, self._models))
            case Place.MODEL if found.name in self._models:
                return _page(model_body(wire.NAME, found.name))
            case Place.JOURNAL:
                return _page([entry.record() for entry in self.journal.entries()])
            case Place.UNUSED:
                return _page([str(reply) for reply in self.unused()])
            case _:
                status, message = _refusal(request.method, found, self._models)
                if request.method == "POST":
                    # A client that uses an unknown endpoint fails its test, even if it handles the answer.
                    self.journal.add_problem(f"POST {found.path}: {message}")
                refused = http_error(wire, status, message=message)
                return replace(refused, headers=(("allow", found.allowed),)) if found.allowed else refused

    def unused(self) -> list[Entry]:
        """Return the entries that were used less often than required; for `forever()`, one use is enough."""
        with self._lock:
            return self._play.script.unused()

    def check_finished(self) -> None:
        """Raise `UnmatchedRequest` if no reply matched a request, or `UnusedReplies` if a reply or fault is unused."""
        with self._lock:
            self._play.check_finished()


def models_body(wire: FormatName, models: Sequence[str]) -> dict[str, JSON]:
    """Return the response body for `GET /v1/models` (Gemini: `/v1beta/models`)."""
    listed: list[JSON] = [model_body(wire, model) for model in models]
    if wire == "gemini":
        return {"models": listed}
    if wire == "anthropic":
        first, last = (models[0], models[-1]) if models else (None, None)
        return {"data": listed, "has_more": False, "first_id": first, "last_id": last}
    return {"object": "list", "data": listed}


def model_body(wire: FormatName, model: str) -> dict[str, JSON]:
    """Return the response body for a request such as `GET /v1/models/gpt-4o`."""
    if wire == "gemini":
        methods: list[JSON] = ["generateContent", "streamGenerateContent"]
        return {"name": f"models/{model}", "displayName": model, "supportedGenerationMethods": methods}
    if wire == "anthropic":
        moment = EPOCH.isoformat().replace("+00:00", "Z")
        return {"type": "model", "id": model, "display_name": model, "created_at": moment}
    return {"id": model, "object": "model", "created": int(EPOCH.timestamp()), "owned_by": "statek-sim"}


def _page(content: JSON) -> Whole:
    return Whole(status=200, body=compact(content).encode())


def _refusal(method: str, found: Route, models: Sequence[str]) -> tuple[int, str]:
    """Return the status and message for a request that no endpoint handles."""
    match found.place:
        case Place.MODEL:
            return 404, f"unknown model {found.name!r}; this server has {', '.join(models)}"
        case Place.WRONG_METHOD:
            return 405, f"{found.path} does not support {method}; use {found.allowed}"
        case Place.NO_EVENTS:
            return 400, f"{found.path} only streams events; add ?alt=sse to the URL"
        case _:
            return 404, (
                f"unknown path {found.path}; this server has /v1/chat/completions, /v1/responses, "
                "/v1/embeddings, "
                "/v1/messages, /v1/messages/count_tokens, /v1beta/models/MODEL:generateContent (and :countTokens, "
                f":embedContent), /v1/models, {JOURNAL} and {UNUSED}"
            )
