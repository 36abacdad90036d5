"""With which texts the matches of a pattern begin."""

from __future__ import annotations

from importlib.resources import files
from json import loads
from random import Random

from statek_sim.agent.guards.injection import rules
from statek_sim.regex_prefixes import Beginning, Places, beginnings
from statek_sim.substring_index import Needles
from tests.tables import table_test


@table_test(
    ("pattern", "texts"),
    [
        ("ignore|forget", ("ignore", "forget")),
        ("ignore all", ("ignore all",)),
        ("(?:re)?peat", ()),
        ("(?:re|un)(?:do|x)", ("re", "un")),
        ("colou?r", ("colo",)),
        ("ab+", ("ab",)),
        ("ab{0,2}c", ()),
        (r"\[inst\]", ("[inst]",)),
        (r"\d+ms", ()),
        ("[ab]c", ()),
        ("[]a|b)]c", ()),
        (r"abc[\]|x](?:y|z)|def", ("abc", "def")),
        (r"(?<!to\W)(?:leak|dump)|(?=ab)abc", ("leak", "dump", "abc")),
        ("do not|do|don", ("do",)),
        ("a|bc", ()),
        ("ab(?#the last may be missing)?|cd", ()),
        ("(ab)", ()),
        ("", ()),
    ],
)
def test_they_are_read_from_the_pattern(pattern: str, texts: tuple[str, ...]) -> None:
    assert beginnings(pattern) == texts


def test_a_pattern_that_takes_case_as_it_comes_has_none() -> None:
    assert beginnings("(?i)ignore") == ()


def test_matches_are_those_of_a_search() -> None:
    random = Random(11)
    corpus = (
        files("statek_sim.agent.guards").joinpath("corpora", "injection.jsonl").read_text(encoding="utf-8")
    )
    texts = [loads(line)["text"].lower() for line in corpus.splitlines()[::9]]
    each = [Beginning(rule.pattern) for rule in rules()]
    wanted = Needles(text for beginning in each for text in beginning.long)
    pieces = [
        "ignore",
        "ignor",
        "your rules",
        " ",
        ", ",
        "you are now",
        "say",
        "all previous",
        "the system prompt",
        "é",
    ]
    texts += [" ".join(random.choices(pieces, k=40)) for _ in range(30)]
    found = 0
    for text in texts:
        places = Places(text, wanted)
        start, end = sorted(random.choices(range(len(text) + 1), k=2))
        for beginning in each:
            for part in ((0, len(text)), (start, end)):
                spans = [match.span() for match in beginning.matches(places, *part)]
                assert spans == [match.span() for match in beginning.pattern.finditer(text, *part)]
                found += len(spans)
    assert found > 100
