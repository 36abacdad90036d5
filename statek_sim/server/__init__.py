"""A fake LLM server: the scripted LLM behind HTTP, for any client in any language.

`exchange` what goes in and comes out · `routes` which path speaks which format · `llm` decides every answer: no
sockets, no clock · `played_script` which reply answers · `known` reads requests and counts their tokens · `demands`
what a request wants of a reply · `rendering` from a reply to HTTP · `embedding` vectors of texts · `conversations`
what clients go on from · `elsewhere` models, journal and refusals · `fault`, `damage` faults on command · `journal`
what was asked · `nearest` what to say when the script has no answer · `recorded` answers from a cassette

Shells: `protocol` HTTP/1.1 on asyncio, `answering` its way back, `running` that server in a thread, `served` what a
test holds of it, `asgi` for every ASGI server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.server.asgi import asgi_app as asgi_app
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
    from statek_sim.server.served import LLMServer as LLMServer

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "statek_sim.server.asgi": ("asgi_app",),
        "statek_sim.server.fault": (
            "EmptyChoices",
            "FaultRule",
            "HttpError",
            "Malformed",
            "NoAnswerAtAll",
            "NoUsage",
            "NullUsage",
            "Reset",
            "SlowFirstByte",
            "SlowTokens",
            "Truncated",
            "WrongContentType",
        ),
        "statek_sim.server.llm": ("FakeLLM",),
        "statek_sim.server.served": ("LLMServer",),
    },
)
