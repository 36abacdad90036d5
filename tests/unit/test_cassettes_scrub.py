"""Scrubbing: what is found in one place of an exchange is taken out of all of them."""

from __future__ import annotations

import pytest

from statek_sim.cassettes.exchange import Headers
from statek_sim.cassettes.scrub import scrubbed
from tests.property.planted import exchange


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ((("x-debug", "Bearer Opaque-4f9Qm2Zr8"),), "Opaque-4f9Qm2Zr8"),
        ((("x-note", "password=hunter22x"),), "hunter22x"),
        ((("referer", "https://h.test/?access_token=4f9Qm2Zr8T"),), "4f9Qm2Zr8T"),
        ((("x-from", "https://me:hunter22x@h.test/"),), "hunter22x"),
    ],
)
def test_what_a_header_of_any_name_holds_is_found_again_in_the_bodies(headers: Headers, key: str) -> None:
    sent = scrubbed(exchange(f'{{"note": "it was {key}"}}', f'{{"echo": "{key}"}}', headers=headers))
    came = scrubbed(exchange("{}", f'{{"echo": "{key}"}}', answer=headers))
    assert key not in repr(sent)
    assert key not in repr(came)
