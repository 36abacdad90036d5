"""What credentials look like, and what they are called.

The shapes are those that their makers publish and that GitHub's secret scanning, gitleaks 8 and detect-secrets 1.5
look for; the model providers' are as of 2026. detect-secrets itself does not fit: it reads lines of source code,
knows neither Anthropic's, Google's nor Hugging Face's keys, and cannot see a key that a stream sends in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from statek_sim.cassettes.own_secrets import NO_OWN, OwnSecrets, folded

PLACEHOLDER: Final = "REDACTED"
"""What stands in a cassette where a secret was."""

LEAST_LEARNED: Final = 12
"""Shortest key, in characters, that is looked for elsewhere: `test` would be found in ordinary words."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a secret is in a text, and what it seems to be."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for beside what everyone knows: the keys that a request was sent with, a team's own secrets."""

    keys: tuple[str, ...] = ()
    own: OwnSecrets = NO_OWN


_NOTHING_ELSE: Final = Sought()


@dataclass(frozen=True, slots=True)
class Shape:
    """Credentials known by how they look. One of `hints` is in each of them, in lower case: a quick first look."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(kind: str, hints: str, pattern: str) -> Shape:
    return Shape(kind, tuple(hints.split("|")), re.compile(rf"(?<![A-Za-z0-9]){pattern}", re.DOTALL))


SHAPES: Final = (
    # OpenAI, Anthropic, OpenRouter, DeepSeek, LiteLLM and others; a digit, so that hyphenated words are none.
    _shape("an API key (sk-…)", "sk-", r"sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,}"),
    _shape("a Google API key", "aiza", r"AIza[\w-]{35}"),
    _shape("a Google OAuth token", "ya29.", r"ya29\.[\w-]{20,}"),
    _shape("a Google OAuth secret", "gocspx-", r"GOCSPX-[\w-]{20,}"),
    _shape("a Groq API key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    _shape("an xAI API key", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    _shape("a Perplexity API key", "pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    _shape("a Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    _shape("a Replicate token", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    _shape("an NVIDIA API key", "nvapi-", r"nvapi-[\w-]{40,}"),
    _shape("a Cerebras API key", "csk-", r"csk-[A-Za-z0-9]{30,}"),
    _shape("a Fireworks API key", "fw_", r"fw_(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}"),
    _shape("a Tavily API key", "tvly-", r"tvly-[\w-]{20,}"),
    _shape("a LangSmith key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    _shape("a Databricks token", "dapi", r"dapi[0-9a-f]{32}"),
    _shape(
        "an AWS access key id", "akia|asia|abia|acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"
    ),
    _shape("a GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_", r"gh[pousr]_[A-Za-z0-9]{36,}"),
    _shape("a GitHub token", "github_pat_", r"github_pat_\w{50,}"),
    _shape("a GitLab token", "glpat-", r"glpat-[\w-]{20,}"),
    _shape("a Slack token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _shape("a Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/services/[A-Za-z0-9+/]{40,}"),
    _shape("a Stripe key", "k_live_|k_test_|k_prod_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    _shape("a SendGrid key", "sg.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _shape("an npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _shape("a PyPI token", "pypi-", r"pypi-AgE[\w-]{50,}"),
    _shape("a JSON Web Token", "eyj", r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    _shape(
        "a private key",
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?!-----END).)*(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
)

_BEARER: Final = re.compile(r"\b(?:bearer|basic)\s+([\w.~+/-]{16,}=*)", re.IGNORECASE)
_LOGIN: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^/\s:@\"'\\]{1,100}:([^/\s:@\"'\\]{3,200})@", re.IGNORECASE
)
_PARAMETER: Final = re.compile(r"[?&;]([\w.-]{1,60})=([^&;#\s\"'\\<>]{4,})")
# The start of a name and a text as JSON has them, at any depth of quotation: `"name": "…`, `\\"name\\": \\"…`.
_MEMBER: Final = re.compile(r"(?P<q>\\{0,15}[\"'])(?P<name>[\w-]{3,40})(?P=q)\s*:\s*(?P=q)")
_QUOTE: Final = re.compile(r"(\\*)([\"'])")

# Compared without hyphens, underscores and case.
_NAMES: Final = frozenset(
    {
        "accesskey", "accesstoken", "apikey", "apitoken", "authorization", "authtoken", "awssecretaccesskey",
        "bearertoken", "clientsecret", "cookie", "idtoken", "passphrase", "passwd", "password", "privatekey",
        "proxyauthorization", "pwd", "refreshtoken", "secret", "secretaccesskey", "secretkey", "sessiontoken",
        "setcookie", "xapikey", "xauthtoken", "xgoogapikey",
    }
)  # fmt: skip
"""Members of JSON bodies and fields of forms. `token` is none: it is a piece of a reply in log probabilities."""

_SHORTEST_NAMES: Final = tuple(
    sorted(name for name in _NAMES if not any(other in name for other in _NAMES - {name}))
)
"""The names that all others contain."""

_PARAMETERS: Final = _NAMES | {
    "auth", "awsaccesskeyid", "key", "sig", "signature", "subscriptionkey", "token", "xamzcredential",
    "xamzsecuritytoken", "xamzsignature", "xgoogcredential", "xgoogsignature",
}  # fmt: skip
"""Parameters of addresses."""

LEAST_VAGUE: Final = 16
"""Shortest value, in characters, that counts as a credential because a parameter in a text is called `key`."""

_HEADER_ENDINGS: Final = (
    "key",
    "authorization",
    "cookie",
    "credential",
    "password",
    "secret",
    "signature",
    "token",
)
_PUBLIC_HEADERS: Final = frozenset(
    {"cachekey", "idempotencykey", "secwebsocketkey", "surrogatekey", "xcachekey"}
)
"""Headers that end so and hold no secret."""

_HINTS: Final = (
    *dict.fromkeys(hint for shape in SHAPES for hint in shape.hints),
    "bearer",
    "basic",
    "://",
    "\\u00",
)
"""What a text with a secret in it has, unless a name tells; an escape may hide any letter."""
_NO_SECRETS: Final = re.compile(
    r"(?:bearer |basic |token )?(?:\[?(?:redacted|filtered|scrubbed|removed|hidden|masked|secret|dummy|fake|test|"
    r"placeholder|example|none|null|true|false|undefined)[\])]?|[*x.•-]+|<[^<>]*>|\$?\{[^{}]*\}|%\([^()]*\)s)?",
    re.IGNORECASE,
)


def is_secret_header(name: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether a header of this name holds a credential or a session."""
    plain = folded(name)
    return (plain.endswith(_HEADER_ENDINGS) and plain not in _PUBLIC_HEADERS) or own.is_name(name)


def is_secret_parameter(name: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether a parameter of an address holds a credential."""
    return folded(name) in _PARAMETERS or own.is_name(name)


def is_secret_name(name: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether a member of a JSON body, or a field of a form, holds a credential."""
    return folded(name) in _NAMES or own.is_name(name)


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret that is not there: `REDACTED`, `<api key>`, `***`, or nothing."""
    return _NO_SECRETS.fullmatch(value.strip()) is not None


def bare(value: str) -> str:
    """Return a header's value without the word that says what it is: `Bearer abc` is `abc`."""
    kind, space, rest = value.strip().partition(" ")
    return rest.strip() if space and kind.lower() in ("bearer", "basic", "token", "apikey") else value.strip()


def looks_clean(text: str, own: OwnSecrets = NO_OWN) -> bool:
    """Whether a quick look shows that a JSON text holds no credential at all; False decides nothing."""
    if not own.is_empty and own.may_be_in(text):
        return False
    lowered = text.lower()
    for hint in _HINTS:
        if hint in lowered:
            return False
    plain = lowered.replace("-", "").replace("_", "")
    for name in _SHORTEST_NAMES:
        if name in plain:
            return False
    return "=" not in text or _PARAMETER.search(text) is None


def find_secrets(text: str, sought: Sought = _NOTHING_ELSE) -> list[Span]:
    """Return where a text holds credentials, in order and apart."""
    own = (Span(*place) for place in sought.own.found(text))
    found = (*_known(text, sought.keys), *own, *_found(text, sought.own))
    spans = sorted(found, key=lambda span: (span.start, -span.end))
    apart: list[Span] = []
    for span in spans:
        if apart and span.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = Span(last.start, max(last.end, span.end), last.kind)
        else:
            apart.append(span)
    return apart


def replaced(text: str, spans: Iterable[Span]) -> str:
    """Return a text with the placeholder for each span; they are in order and apart."""
    pieces, end = [], 0
    for span in spans:
        pieces += [text[end : span.start], PLACEHOLDER]
        end = span.end
    return "".join((*pieces, text[end:]))


def _known(text: str, known: Iterable[str]) -> Iterator[Span]:
    for key in known:
        at = text.find(key)
        while at >= 0:
            yield Span(at, at + len(key), "a key that the request was sent with")
            at = text.find(key, at + len(key))


def _found(text: str, own: OwnSecrets) -> Iterator[Span]:
    lowered = text.lower()
    for shape in SHAPES:
        if any(hint in lowered for hint in shape.hints):
            for match in shape.pattern.finditer(text):
                yield Span(*match.span(), shape.kind)
    if "bearer" in lowered or "basic" in lowered:
        yield from _values(_BEARER, text, 1, "an authorization")
    if "://" in text:
        yield from _values(_LOGIN, text, 1, "a password in an address")
    if "=" in text:
        for match in _PARAMETER.finditer(text):
            telling = is_secret_name(match[1], own) or (
                is_secret_parameter(match[1]) and len(match[2]) >= LEAST_VAGUE
            )
            if telling and not is_placeholder(match[2]):
                yield Span(*match.span(2), f"the parameter {match[1]!r}")
    if ":" in text:
        yield from _members(text, own)


def _members(text: str, own: OwnSecrets) -> Iterator[Span]:
    """Yield the values of members with a telling name, in JSON that stands in a text, maybe cut off."""
    for match in _MEMBER.finditer(text):
        if is_secret_name(match["name"], own):
            end = _closing(text, match.end(), match["q"])
            if not is_placeholder(text[match.end() : end]):
                yield Span(match.end(), end, f"a value named {match['name']!r}")


def _closing(text: str, start: int, opening: str) -> int:
    """Return where a quoted text ends that starts there: at a quote with as many backslashes as its first one."""
    depth = len(opening) - 1
    for match in _QUOTE.finditer(text, start):
        slashes = len(match[1])
        if match[2] == opening[-1] and (slashes == depth or (depth == 0 and slashes % 2 == 0)):
            return match.end() - len(opening) if slashes == depth else match.start(2)
    return len(text)


def _values(pattern: re.Pattern[str], text: str, group: int, kind: str) -> Iterator[Span]:
    for match in pattern.finditer(text):
        if not is_placeholder(match[group]):
            yield Span(*match.span(group), kind)
