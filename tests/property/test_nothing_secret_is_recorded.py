"""Ten thousand secrets, planted in every place that the documentation claims, in every encoding: none can be seen.

`make thorough` plants them all, `make test` a share.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.reading import read, replaced
from statek_sim.cassettes.scrub import scrubbed
from tests.examples import examples
from tests.property.planted import (
    ANYWHERE,
    NAMED,
    Row,
    again,
    beside,
    chat,
    core,
    dumps,
    exchange,
    is_seen,
    is_whole,
    odd,
    shaped,
    sight,
)

PLANTS: Final = int(os.environ.get("STATEK_PLANTS", examples(10_000)))
"""Secrets per run; the environment may ask for more."""
SEED: Final = os.environ.get("STATEK_PLANTS_SEED", "1")

Plant = Callable[[Random], tuple[str, Exchange]]


def plant(how: Row, drawn: Callable[[Random], str]) -> Plant:
    def planted(random: Random) -> tuple[str, Exchange]:
        secret = drawn(random)
        return secret, how(random, secret)

    return planted


def coming_again(how: Row) -> Row:
    return lambda random, secret: again(random, secret, how)


def long_number(random: Random) -> tuple[str, Exchange]:
    secret = str(random.randrange(10**8, 10**14))
    return secret, exchange(dumps(random, {"a": 1, random.choice(["pin_token", "password"]): int(secret)}))


PLACES: Final[dict[str, Plant]] = {
    "a long number under a telling name": long_number,
    "a random text beside its name": plant(beside, lambda random: core(random, 32)),
    **{f"a key in {place}": plant(how, shaped) for place, how in ANYWHERE.items()},
    **{f"whatever is in {place}": plant(how, odd) for place, how in NAMED.items()},
    **{
        f"what was sent comes again in {place}": plant(coming_again(how), odd)
        for place, how in ANYWHERE.items()
        # What is no JSON, or is folded, has no place for line breaks and quotes.
        if place != "pieces in events without JSON"
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_can_be_seen_in(place: str) -> None:
    for number in range(-(-PLANTS // len(PLACES))):
        random = Random(f"{SEED}/{place}/{number}")
        secret, one = PLACES[place](random)
        clean = scrubbed(one)
        assert is_seen(secret, sight(clean)) is None, f"{number}: {secret!r} in {clean!r}"
        assert scrubbed(clean) == clean
        assert is_whole(one, clean), f"{number}: {one!r} became {clean!r}"


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_could_be_seen_before_in(place: str) -> None:
    """The eyes of the test above: without them it could not fail."""
    seen = 0
    for number in range(20):
        secret, one = PLACES[place](Random(f"{SEED}/{place}/{number}"))
        seen += is_seen(secret, sight(one)) is not None
    assert seen >= (0 if place.endswith("gzip") else 10)


@pytest.mark.parametrize(
    "text",
    [
        "db_password=qzvkjatu\nb=2",
        "run it with token=qzvkjatu here",
        "export admin_password=qzvkjatu.atu",
        '"pwd=qzvkjatu"',
    ],
)
def test_a_word_behind_an_assignment_is_a_secret(text: str) -> None:
    clean = scrubbed(exchange(dumps(Random(1), chat(text))))
    assert b"qzvkjatu" not in clean.request.body
    assert b"REDACTED" in clean.request.body


@pytest.mark.parametrize(
    "code",
    ["Client(url, password=word)", "password = read_it()", "f(token=token)", "a, secret=settings.secret"],
)
def test_code_that_passes_a_secret_on_holds_none(code: str) -> None:
    one = exchange(dumps(Random(1), chat(code)))
    assert scrubbed(one).request.body == one.request.body


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("<token><![CDATA[hun]]ter2]]></token>", "<token><![CDATA[REDACTED]]></token>"),
        (
            "<a:token k='x'>\n<v><![CDATA[x<y]]></v>z9</a:token>",
            "<a:token k='x'>\n<v><![CDATA[REDACTED]]></v>REDACTED</a:token>",
        ),
        ("<token>ab9</tokens>c9</token>", "<token>REDACTED</tokens>REDACTED</token>"),
        ("<token/>said</x>", "<token/>said</x>"),
    ],
)
def test_what_is_left_of_an_element_is_still_well_formed(text: str, clean: str) -> None:
    assert replaced(text, read(text)) == clean
