"""What the server answers where no reply, embedding or count is asked for: models, the journal, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from statek_sim.clock import EPOCH
from statek_sim.providers.mismatch import PendingReply
from statek_sim.providers.wire.encoding import compact
from statek_sim.providers.wire.format import FormatName
from statek_sim.providers.wire.formats import FORMATS
from statek_sim.server.exchange import Answer, Incoming, Whole
from statek_sim.server.journal import Journal
from statek_sim.server.rendering import http_error
from statek_sim.server.routes import JOURNAL, UNUSED, Place, Route
from statek_sim.values import JSON


def models_body(wire: FormatName, models: Sequence[str], created: int) -> bytes:
    """Return the body of `/v1/models` (`/v1beta/models`). `created` is in Unix seconds."""
    listed: list[JSON] = [_model(wire, model, created) for model in models]
    match wire:
        case "anthropic":
            ends: dict[str, JSON] = {
                "first_id": models[0] if models else None,
                "last_id": models[-1] if models else None,
            }
            return compact({"data": listed, "has_more": False, **ends}).encode()
        case "gemini":
            return compact({"models": listed}).encode()
        case "openai" | "responses":
            return compact({"object": "list", "data": listed}).encode()


def model_body(wire: FormatName, model: str, created: int) -> bytes:
    """Return the body of `/v1/models/MODEL`."""
    return compact(_model(wire, model, created)).encode()


def _model(wire: FormatName, model: str, created: int) -> JSON:
    match wire:
        case "anthropic":
            moment = datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z")
            return {"type": "model", "id": model, "display_name": model, "created_at": moment}
        case "gemini":
            methods: list[JSON] = ["generateContent", "streamGenerateContent"]
            return {"name": f"models/{model}", "displayName": model, "supportedGenerationMethods": methods}
        case "openai" | "responses":
            return {"id": model, "object": "model", "created": created, "owned_by": "statek-sim"}


def elsewhere(
    request: Incoming,
    found: Route,
    models: Sequence[str],
    journal: Journal,
    unused: Callable[[], Sequence[PendingReply]],
) -> Answer:
    """Return the answer; what is posted to a place that is not there is a problem of the journal's."""
    wire = FORMATS["anthropic" if "anthropic-version" in request.headers else found.wire]
    created = int(EPOCH.timestamp())
    match found.place:
        case Place.MODELS:
            return Whole(status=200, body=models_body(wire.NAME, models, created))
        case Place.MODEL if found.name in models:
            return Whole(status=200, body=model_body(wire.NAME, found.name, created))
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
                f"nothing at {found.path}; there are /v1/chat/completions, /v1/responses (and /ID), "
                "/v1/embeddings, "
                "/v1/messages, /v1/messages/count_tokens, /v1beta/models/MODEL:generateContent (and :countTokens, "
                f":embedContent), /v1/models, {JOURNAL} and {UNUSED}"
            )
