"""OpenAI's Responses API. STATEK does not speak it; other clients of the fake server do."""

from typing import Final

from statek_sim.providers.wire.format import FormatName
from statek_sim.providers.wire.openai.client import request_headers as request_headers
from statek_sim.providers.wire.openai.server import error_body as error_body
from statek_sim.providers.wire.responses.client import read_reply as read_reply
from statek_sim.providers.wire.responses.client import request_body as request_body
from statek_sim.providers.wire.responses.client import request_url as request_url
from statek_sim.providers.wire.responses.server import read_request as read_request
from statek_sim.providers.wire.responses.server import reply_body as reply_body
from statek_sim.providers.wire.responses.stream import join_stream as join_stream
from statek_sim.providers.wire.responses.stream import reply_stream as reply_stream

NAME: Final[FormatName] = "responses"
