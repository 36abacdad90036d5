"""Recognizes quoted attacks, for example in an article about injections, which are not instructions to the model."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from statek_sim.agent.guards.injection import Match

_QUOTED: Final = re.compile(
    r'"[^"\n]+"|“[^“”]+”|„[^„“”]+[“”]|«[^«»]+»|»[^«»]+«|\u2018[^\u2018\u2019]+\u2019'
    r"|```.+?```|`[^`\n]+`|^>[^\n]+(?:\n>[^\n]*)*",
    re.DOTALL | re.MULTILINE,
)
_ABOUT_ATTACKS: Final = re.compile(
    r"\battack|jailbreak|\bexploit|vuln[eé]rab|malicious|\binje[ck]t|\binyecc|\binjeç|\biniezion|wstrzykn"
    r"|\bangr(?:iff|eif)|schwachstelle|\battaqu|\bataque|\batacante|\battacc|\baanval|kwetsba|\batak|napastni|podatnoś",
    re.IGNORECASE,
)
"""Word stems that concern attacks, in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish."""


def not_quoted(text: str, matches: Iterable[Match]) -> Iterator[Match]:
    """Yield the matches that are not in a quotation, quoted line or code in a text about attacks.

    The text must mention attacks outside its quotations, because quotation marks alone prove nothing: every JSON string
    has them.
    """
    quotations = [found.span() for found in _QUOTED.finditer(text)]
    if _ABOUT_ATTACKS.search(_QUOTED.sub(" ", text)) is None:
        quotations = []
    starts = [start for start, _ in quotations]
    for match in matches:
        at = bisect_right(starts, match.start) - 1
        if at < 0 or match.end > quotations[at][1]:
            yield match
