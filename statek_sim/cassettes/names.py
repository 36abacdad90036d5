"""What credentials are called: headers, parameters, members and fields; and the values that are none."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from math import log2
from typing import Final

from statek_sim.cassettes.own_secrets import NO_OWN, OwnSecrets, folded

PLACEHOLDER: Final = "REDACTED"
"""What stands in a cassette where a secret was."""

# Names are compared without hyphens, underscores and case, by how they end.
_STRONG: Final = (
    "accesskey", "accesskeyid", "accountkey", "adminpass", "apikey", "authkey", "authorization", "bearer",
    "clientassertion", "cookie",
    "dbpass", "emailpass", "encryptionkey", "ftppass", "hmackey", "jwt", "loginpass", "mailpass", "masterkey",
    "mysqlpass", "passcode", "passphrase", "passwd", "password", "passwort", "pgpass", "privatekey", "proxypass",
    "pwd", "redispass", "rootpass", "secret", "secretkey", "servicekey", "sessionkey", "sharedkey", "signingkey",
    "smtppass", "sshpass", "subscriptionkey", "token", "userpass",
)  # fmt: skip
_VAGUE: Final = ("auth", "credential", "key")
"""Names of credentials and of much else: what they hold counts when it looks random."""
_PLURALS: Final = (
    "apikey",
    "cookie",
    "credential",
    "passphrase",
    "password",
    "secret",
    "secretkey",
    "accesskey",
)
_TAIL: Final = re.compile(r"(?:\d{1,2}|again|confirm|confirmation|current|new|old|repeat|value)$")

_PUBLIC: Final = (
    # What Kubernetes calls the names of secrets.
    "pullsecret", "pullsecrets",
    "cachekey", "foreignkey", "idempotencykey", "partitionkey", "primarykey", "publickey", "sortkey", "surrogatekey",
    "websocketkey",
    # Where a list goes on, and what tokenizers call their pieces.
    "bostoken", "clstoken", "continuationtoken", "cursortoken", "endtoken", "eostoken", "firsttoken", "lasttoken",
    "masktoken", "maxtoken", "nexttoken", "nextpagetoken", "outputtoken", "inputtoken", "padtoken", "pagetoken",
    "paginationtoken", "pertoken", "previoustoken", "septoken", "starttoken", "stoptoken", "synctoken", "unktoken",
)  # fmt: skip
"""Names that end like those of credentials and hold none."""

_HEADERS: Final = ("authorization", "cookie", "credential", "key", "password", "secret", "signature", "token")
_PARAMETERS: Final = frozenset(
    {
        "assertion", "auth", "awsaccesskeyid", "codeverifier", "key", "samlresponse", "sig", "signature",
        "xamzcredential", "xamzsignature", "xgoogcredential", "xgoogsignature",
    }
)  # fmt: skip
"""Parameters of addresses, beside the names of members."""
_COUNTED: Final = ("token", "cookie", "bearer", "jwt")
"""Names under which a short number is an id or a count."""
LEAST_UNCOUNTED: Final = 8
"""Shortest number, in digits, that is neither the id of a token nor a count of them."""

_NO_SECRETS: Final = re.compile(
    r"(?:bearer |basic |token )?(?:\[?(?:redacted|filtered|scrubbed|removed|hidden|masked|secret|dummy|fake|test|"
    r"placeholder|example|none|null|nil|true|false|undefined|string|str|text|required|optional)[\])]?|[*x.•…-]+|"
    r"<[^<>]*>|\$?\{\{?[^{}]*\}?\}|\$[A-Z_]+|%\([^()]*\)s|"
    # Not `your cat and 4 digits`, which is a password.
    r"your[-_ ](?:[a-z]+\d?[-_ ]){0,4}[a-z]*(?:key|token|secret|passw(?:or)?d|passphrase|pass|pwd|"
    r"credential|value|id|name|user|login|e?mail|url|jwt|cookie|string|auth|authorization|bearer)s?"
    r"(?:[-_ ](?:goes[-_ ])?here)?)?",
    re.IGNORECASE,
)
NUMBER: Final = re.compile(r"-?\d[\d.eE+-]*")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PUBLIC_NAMES: Final = frozenset(_PUBLIC)
_SEGMENTS: Final = re.compile(r"[\[\].]")

LEAST_RANDOM: Final = 16
"""Shortest value, in characters, that can look random."""
_LEAST_ENTROPY: Final = 3.0
"""Bits per character of a value that looks random; 16 different characters have 4."""

_WORDS_OF_NAMES: Final = ((24, 3.6), (16, 3.3), (8, 3.0), (0, 0.0))
"""From how many characters on how many letters a word of a name has on average: of 90,000 names of programs 3 in 100
have fewer, half of them with digits; of drawn values nine in ten. Shorter ones never look drawn."""
_SIGNS_OF_BASE64: Final = str.maketrans("", "", "+/=")

LEAST_LEARNED: Final = 4
"""Shortest secret, in characters, that is looked for elsewhere."""
WHOLE_WORDS: Final = 12
"""A learned secret shorter than this, in characters, is looked for as a word of its own."""
_PROTOCOL: Final = frozenset(
    {
        "anthropic", "application", "assistant", "completion", "completions", "content", "developer", "embedding",
        "function", "functions", "lm-studio", "localhost", "message", "messages", "not-needed", "ollama", "openai",
        "response", "responses", "subject", "thinking", "tool_use", "username",
    }
)  # fmt: skip
"""Words that are passed as keys where none is needed, or that bodies are made of: not looked for elsewhere."""


def is_secret_header(name: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether a header of this name holds a credential or a session."""
    plain = folded(name)
    return (plain.endswith(_HEADERS) and not _is_public(name)) or is_secret_name(name, own)


def holds_secret(name: str, value: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether this header holds a credential: its name says so, or is vague (`x-auth`) and the value looks random."""
    return is_secret_header(name, own) or (is_vague_name(name) and looks_random(bare(value)))


def is_secret_parameter(name: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether a parameter of an address, or a field of a form, holds a credential."""
    return folded(_last(name)) in _PARAMETERS or is_secret_name(name, own)


def is_secret_name(name: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether a member of a JSON body holds a credential, whatever it looks like."""
    return _ends(name, _STRONG) or own.is_name(name)


def is_vague_name(name: str) -> bool:
    """Whether a member of this name holds a credential if its value looks random."""
    return _ends(name, _VAGUE)


def may_be_number(name: str, number: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether a number under this name is a secret: a password may be one, a count or the id of a token is none."""
    if own.is_name(name):
        return True
    counts = folded(_last(name)).endswith(_COUNTED) and len(number) < LEAST_UNCOUNTED
    return is_secret_name(name) and not counts


def _last(name: str) -> str:
    """Return the innermost name of `user[password]` and `user.password`."""
    return next((part for part in reversed(_SEGMENTS.split(name)) if part), name)


@lru_cache(maxsize=4096)
def _ends(name: str, endings: tuple[str, ...]) -> bool:
    # A document has few names, each of them in every entry of its lists.
    plain = folded(_last(name))
    if plain.endswith(_PUBLIC) and _is_public(_last(name)):
        return False
    if plain.endswith(endings):
        return True
    if plain.endswith("s"):
        return plain[:-1].endswith(tuple(ending for ending in _PLURALS if ending in endings))
    shorter = _TAIL.sub("", plain)
    return shorter != plain and shorter.endswith(endings)


def _is_public(name: str) -> bool:
    """Whether a name ends like one that holds no credential, in whole words: `developer_token` is no `per token`."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return any("".join(words[start:]) in _PUBLIC_NAMES for start in range(len(words)))


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret that is not there: `REDACTED`, `<api key>`, `***`, or nothing."""
    return _NO_SECRETS.fullmatch(value.strip()) is not None


def bare(value: str) -> str:
    """Return a header's value without the word that says what it is: `Bearer abc` is `abc`."""
    kind, space, rest = value.strip().partition(" ")
    return rest.strip() if space and kind.lower() in ("bearer", "basic", "token", "apikey") else value.strip()


def looks_random(value: str) -> bool:
    """Whether a value looks like one that a machine drew: letters and digits mixed, no words, no UUID."""
    if len(value) < LEAST_RANDOM or _UUID.fullmatch(value) or is_placeholder(value) or " " in value:
        return False
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    if letters < 2 or (digits < 2 and not looks_drawn(value)):
        return False
    size = len(value)
    entropy = -sum(count / size * log2(count / size) for count in Counter(value).values())
    return entropy >= _LEAST_ENTROPY


def looks_drawn(value: str) -> bool:
    """Whether letters change their case as those of few names do: `bFVaHbXNRq`, and not `getUserByName`."""
    letters = value.translate(_SIGNS_OF_BASE64)
    most = next(most for size, most in _WORDS_OF_NAMES if len(letters) >= size)
    return letters.isalnum() and len(_WORDS.findall(letters)) * most > len(letters)


def is_worth_learning(value: str) -> bool:
    """Whether a secret is looked for elsewhere: one that could be an ordinary word or number is not."""
    if len(value) < LEAST_LEARNED or is_placeholder(value) or value.lower() in _PROTOCOL:
        return False
    plain_word = (
        value.isalpha() and (value.islower() or value.isupper() or value.istitle())
    ) or value.isdigit()
    return not plain_word or len(value) >= 8


def is_telling(name: str, value: str, *, upper: bool) -> bool:
    """Whether what stands behind a name without quotes is a value and not another word of a sentence or program."""
    return is_value(name, value) and (
        any(map(str.isdigit, value)) or looks_drawn(value) or (upper and not value.isupper())
    )


def is_value(name: str, value: str) -> bool:
    """Whether what stands behind a name is a value, and not a placeholder or the name again."""
    return not is_placeholder(value) and folded(value) != folded(name)
