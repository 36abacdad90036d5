"""Gemini's generateContent, on Vertex AI or at Google."""

from typing import Final

from statek_sim.providers.wire.format import FormatName
from statek_sim.providers.wire.gemini.client import read_reply as read_reply
from statek_sim.providers.wire.gemini.client import request_body as request_body
from statek_sim.providers.wire.gemini.client import request_headers as request_headers
from statek_sim.providers.wire.gemini.client import request_url as request_url
from statek_sim.providers.wire.gemini.server import error_body as error_body
from statek_sim.providers.wire.gemini.server import read_request as read_request
from statek_sim.providers.wire.gemini.server import reply_body as reply_body
from statek_sim.providers.wire.gemini.stream import join_stream as join_stream
from statek_sim.providers.wire.gemini.stream import reply_stream as reply_stream

NAME: Final[FormatName] = "gemini"
