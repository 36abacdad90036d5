"""The list of models, as each provider words it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from statek_sim.providers.wire.compact import compact
from statek_sim.providers.wire.format import FormatName
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
