"""A fake LLM server: the scripted LLM behind HTTP, for any client in any language.

`exchange` requests and answers as values, and the format of each path · `llm` decides every answer: no sockets, no
clock · `play` one play of a script · `script_lookup` which reply answers, and the message if none does ·
`parsed_request` requests as they are read, and their token counts · `refusals` what providers refuse · `demands` a
request's requirements on a reply · `rendering` replies as HTTP · `embedding` vectors of texts · `fault` faults on
command · `journal` the requests so far · `recorded` answers from a cassette · `observed_run` the record of a run

Shells: `http_connection` HTTP/1.1 on asyncio · `llm_server` that server in a thread, with its API for tests
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
