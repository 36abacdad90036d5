"""Where a provider is and with which key: STATEK's own variables (behaviour 11).

`<P>_API_URL` is the full address of the chat endpoint, and `<P>_USE_PROMPT_CACHING` says whether Anthropic shall cache.
The key is read here and goes nowhere but into a request's headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from statek_sim.errors import BadSetting
from statek_sim.providers.wire.formats import ANTHROPIC_PROVIDERS
from statek_sim.providers.wire.request import ClientOptions

URL: Final = "_API_URL"
KEY: Final = "_API_KEY"
CACHING: Final = "_USE_PROMPT_CACHING"
RESPONSE_FORMAT: Final = "_RESPONSE_FORMAT_FILE"

_ADDRESS: Final = re.compile(r"https?://[^/\s]+", re.IGNORECASE)
_TRUE: Final = ("true", "1", "yes")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one provider. The key is left out of the text of this value."""

    api_url: str
    api_key: str = field(repr=False)


Accesses = Callable[[str], Access]
"""Returns the access to a provider by its name in upper case."""


def access_from(environment: Mapping[str, str], provider: str) -> Access:
    """Return the access that the environment gives to a provider; `BadSetting` names what is missing.

    `<P>_RESPONSE_FORMAT_FILE`, which makes STATEK send a schema, is not supported and refused.
    """
    name = provider.upper()
    missing = [name + suffix for suffix in (URL, KEY) if not environment.get(name + suffix)]
    if missing:
        raise BadSetting(
            f"cannot send a request to {name}: set {' and '.join(missing)}, as for STATEK itself "
            "(the URL is the whole address of its chat endpoint)"
        )
    url = environment[name + URL]
    if not _ADDRESS.match(url):
        raise BadSetting(
            f"{name}{URL}={url!r}: expected the whole address of a chat endpoint, like https://host/path"
        )
    if environment.get(name + RESPONSE_FORMAT):
        raise BadSetting(f"{name}{RESPONSE_FORMAT} is not supported: unset it")
    return Access(url, environment[name + KEY])


def client_options(environment: Mapping[str, str]) -> ClientOptions:
    """Return what the environment says about requests beside the conversation; only Anthropic's look at it."""
    settings = (environment.get(provider + CACHING, "") for provider in ANTHROPIC_PROVIDERS)
    return ClientOptions(prompt_caching=any(text.lower() in _TRUE for text in settings))
