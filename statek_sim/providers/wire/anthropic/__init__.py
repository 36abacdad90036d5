"""Anthropic Messages."""

from typing import Final

from statek_sim.providers.wire.anthropic.client import read_reply as read_reply
from statek_sim.providers.wire.anthropic.client import request_body as request_body
from statek_sim.providers.wire.anthropic.client import request_headers as request_headers
from statek_sim.providers.wire.anthropic.client import request_url as request_url
from statek_sim.providers.wire.anthropic.server import error_body as error_body
from statek_sim.providers.wire.anthropic.server import read_request as read_request
from statek_sim.providers.wire.anthropic.server import reply_body as reply_body
from statek_sim.providers.wire.anthropic.stream import join_stream as join_stream
from statek_sim.providers.wire.anthropic.stream import reply_stream as reply_stream
from statek_sim.providers.wire.format import FormatName

NAME: Final[FormatName] = "anthropic"
