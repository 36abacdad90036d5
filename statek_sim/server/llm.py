"""The fake LLM: a function from HTTP request to answer, with a script, faults and a journal.

It also serves models, the journal and refusals: requests for anything but a reply, an embedding or a count.
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
from statek_sim.providers.script import Reply
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
from statek_sim.values import JSON, items_of

DEFAULT_MODELS: Final = ("gpt-4o",)


class FakeLLM:
    """Answers chat requests from a script, in OpenAI's two formats, Anthropic's and Gemini's, streamed or not.

    Embeddings and token counts are computed from the text, unless the script has them.

    `script` and `styles` are those of `ScriptedLLM`; a script by role is chosen by the header `x-statek-agent`,
    otherwise by the model. The job is the header `x-statek-job`, or `http`; the turn is one more than the model's
    messages in the request; the attempt comes from the SDKs' retry header. Virtual time is the sum of the answers'
    latencies.

    Usage is counted with the model's tokenizer for replies that do not report it, unless `count_usage` is off.
    `ignored` are unsupported parameters to ignore; others are refused (400). `faults` affect requests by position, rate
    or condition. `pacing` maps latencies to real time. A request without an answer gets status 422 with the nearest
    script entry, and fails `check_finished`.
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
        """Restart with this script and these faults; the journal and virtual time restart too.

        `styles` and `ignored`, if given, replace the previous ones.
        """
        rules = items_of("faults", faults)
        for rule in rules:
            if isinstance(rule, Reply):
                raise BadInput("faults contains a reply; put replies such as fault(429) into the script")
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
        """The requests since the start of the play."""
        return self._play.journal

    def warm_up(self) -> None:
        """Load the tokenizers for usage counts, so that the first request need not wait for them."""
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
        """Return the replies with uses left; a reply that repeats forever needs only one use."""
        with self._lock:
            return self._play.script.unused()

    def check_finished(self) -> None:
        """Raise if a request found no reply (`UnmatchedRequest`), or a reply or fault was unused (`UnusedReplies`)."""
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
    """Return the answer; a POST to an unknown endpoint is recorded as a problem."""
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
                # A client that uses an unknown endpoint fails its test, even if it handles the answer.
                journal.add_problem(f"POST {found.path}: {message}")
            refused = http_error(wire, status, message=message)
            return replace(refused, headers=(("allow", found.allowed),)) if found.allowed else refused


def _page(items: Sequence[JSON]) -> Whole:
    return Whole(status=200, body=compact(list(items)).encode())


def _refusal(method: str, found: Route, models: Sequence[str]) -> tuple[int, str]:
    """Return the status and the message for a request without an endpoint."""
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
