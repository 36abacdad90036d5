"""A fake LLM server: a scripted LLM over HTTP, for clients in any language.

- `exchange`: HTTP requests, routes and responses as values
- `llm`: answers requests, without sockets or a clock
- `play`: plays one script
- `script_lookup`: finds the reply to a request
- `parsed_request`: parsed requests and their token counts
- `refusals`, `anthropic_refusals`, `schema_refusals`, `request_shapes`: the rules for rejecting invalid requests
- `demands`: a request's requirements on a reply
- `rendering`: converts replies to HTTP
- `embedding`: embeddings
- `fault`: injected faults
- `journal`: the requests so far
- `recorded`: replies from a cassette
- `observed_run`: trajectories

Modules with I/O: `http_connection` (HTTP/1.1 on asyncio) and `llm_server` (the server in a thread, and its API for
tests).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.server.fault import EmptyChoices as EmptyChoices
    from statek_sim.server.fault import FaultRule as FaultRule
    from statek_sim.server.fault import HttpError as HttpError
    from statek_sim.server.fault import Malformed as Malformed
    from statek_sim.server.fault import NoAnswerAtAll as NoAnswerAtAll
    from statek_sim.server.fault import NoUsage as NoUsage
    from statek_sim.server.fault import NullUsage as NullUsage
    from statek_sim.server.fault import Reset as Reset
    from statek_sim.server.fault import SlowFirstByte as SlowFirstByte
    from statek_sim.server.fault import SlowTokens as SlowTokens
    from statek_sim.server.fault import Truncated as Truncated
    from statek_sim.server.fault import WrongContentType as WrongContentType
    from statek_sim.server.llm import FakeLLM as FakeLLM
    from statek_sim.server.llm_server import LLMServer as LLMServer

__all__, __getattr__, __dir__ = lazy_exports(__name__)
