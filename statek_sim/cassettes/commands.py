"""Passwords in commands that stand in a text: a tool's arguments, a transcript, a sentence that says how to log in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from statek_sim.cassettes.names import is_placeholder, is_secret_header, is_secret_name
from statek_sim.cassettes.own_secrets import folded

# What is between two words of a command: blanks, or quotes and a comma where its words are a list, `["mysql", "-u"]`.
# The list may stand behind the command's name: `spawn("mysql", ["-u"…`, `"command": "mysql", "args": ["-u"…`.
_GAP: Final = (
    r"(?:[^\S\n]{1,9}|\\{0,7}[\"'],\s{0,60}(?:\\{0,7}[\"']?(?:args|arguments|argv|params)\\{0,7}[\"']?\s?:\s{0,9}(?=\[))?(?:\[\s{0,60})?"
    r"\\{0,7}[\"'])"
)
# A quote is a part of a word, but for one that a list goes on behind: so no place can be read in two ways.
_PART: Final = r"(?:[^\s|;&\"']|[\"'](?!,\s{0,60}\\{0,7}[\"']))"
# Up to here a command goes on that was named; what is quoted in it has no line break.
_GOES_ON: Final = rf"(?:{_GAP}{_PART}{{1,200}}){{0,20}}?{_GAP}"
_QUOTE: Final = r"[\"']?"
_WORD: Final = r"((?![{}\[\]),:])[^\s\"'`\\|;&<>]{1,200})"
_IS: Final = rf"(?:[ =]{{1,3}}|{_GAP})?{_QUOTE}"
"""Between an option and its value."""
_HTPASSWD: Final = (
    rf"\bhtpasswd(?=[^\n]{{0,60}}-\w{{0,8}}b)(?:{_GAP}-(?!\w{{0,8}}n)[A-Za-z]{{1,9}}(?:{_GAP}\d{{1,3}})?)"
)
"""The command with its options, of which one is `b` and none is `n`."""
_MACHINE: Final = rf"(?:machine\s{{1,60}}{_PART}{{1,200}}|default)\s{{1,60}}"
"""What a line of a .netrc begins with."""

_OPTIONS: Final = (
    (
        ("mysql", "mariadb"),
        rf"\b(?:mysql|mariadb)[a-z_-]{{0,20}}{_GOES_ON}-p(?!\d+:\d)(?:{_QUOTE}(?![,\"'])|{_GAP}(?<=[\"'])){_WORD}",
    ),
    (
        ("curl", "wget"),
        rf"\b(?:curl|wget){_GOES_ON}(?:-[A-Za-z]{{0,6}}[uU]|--(?:proxy-)?user){_IS}[^\s:\"'\\]{{0,100}}{_QUOTE}:(?!//){_QUOTE}{_WORD}",
    ),
    (("sshpass",), rf"\bsshpass{_GAP}-p{_IS}{_WORD}"),
    (("redis-cli",), rf"\bredis-cli{_GOES_ON}-a{_GAP}{_QUOTE}{_WORD}"),
    (
        ("login",),
        rf"\b(?:docker|podman|nerdctl|skopeo|helm{_GAP}registry|az(?:{_GAP}acr)?|oc){_GAP}login{_GOES_ON}-p{_IS}{_WORD}",
    ),
    (("mongo",), rf"\bmongo(?:sh|dump|restore|export|import|stat|top)?{_GOES_ON}-p{_IS}{_WORD}"),
    (
        ("ldap",),
        rf"\bldap(?:search|add|modify|delete|modrdn|compare|whoami|passwd){_GOES_ON}-w{_IS}{_WORD}",
    ),
    (
        ("smb", "rpcclient"),
        rf"\b(?:smbclient|smbget|smbmap|rpcclient){_GOES_ON}(?:-U|--user){_IS}[^\s%\"']{{1,100}}%{_WORD}",
    ),
    (("sqlcmd", "osql", "bcp"), rf"\b(?:sqlcmd|osql|bcp){_GOES_ON}-P{_IS}{_WORD}"),
    (("plink", "pscp", "psftp"), rf"\b(?:plink|pscp|psftp){_GOES_ON}-pw{_GAP}{_QUOTE}{_WORD}"),
    (("openssl",), rf"\bopenssl{_GOES_ON}-pass(?:in|out)?{_GAP}{_QUOTE}pass:{_WORD}"),
    (("openssl",), rf"\bopenssl{_GAP}enc{_GOES_ON}-k{_GAP}{_QUOTE}{_WORD}"),
    (
        ("htpasswd",),
        rf"{_HTPASSWD}{{1,5}}{_GAP}(?!-){_PART}{{1,200}}{_GAP}{_PART}{{1,200}}{_GAP}{_QUOTE}{_WORD}",
    ),
    (
        ("htpasswd",),
        rf"{_HTPASSWD}{{0,4}}{_GAP}-\w{{0,8}}n\w{{0,8}}{_GAP}(?!-){_PART}{{1,200}}{_GAP}{_QUOTE}{_WORD}",
    ),
    (
        ("rabbitmqctl",),
        rf"\brabbitmqctl{_GOES_ON}(?:add_user|change_password|authenticate_user){_GAP}{_PART}{{1,200}}{_GAP}{_QUOTE}{_WORD}",
    ),
    (("ftp",), rf"\bftp{_GOES_ON}-u{_IS}[^\s:\"'\\]{{1,100}}:(?!//){_WORD}"),
    (
        ("password-stdin",),
        rf"\b(?:echo|printf){_GAP}{_QUOTE}{_WORD}{_QUOTE}[ \t]{{0,9}}\|[^\n|]{{1,200}}--password-stdin",
    ),
    (("lftp",), rf"\blftp{_GOES_ON}-u{_IS}[^\s,\"'\\]{{1,100}},{_WORD}"),
    (("freerdp",), rf"\b[xw]l?freerdp3?{_GOES_ON}/p:{_QUOTE}{_WORD}"),
    (("7z", "zip"), rf"\b(?:7z[ar]?{_GOES_ON}-p|(?:un)?zip{_GOES_ON}-P{_IS}){_WORD}"),
    (
        ("securestring",),
        rf"(?i:\bConvertTo-SecureString(?:{_GAP}-String)?){_GAP}(?![-$(]){_QUOTE}{_WORD}",
    ),
    (
        ("login",),
        rf"\b{_MACHINE}login\s{{1,60}}{_PART}{{1,200}}\s{{1,60}}password\s{{1,60}}{_WORD}",
    ),
    (
        ("identified",),
        rf"(?i:\bIDENTIFIED\s{{1,9}}(?:WITH\s{{1,9}}\S{{1,60}}\s{{1,9}})?BY\s{{1,9}})[\"']{_WORD}",
    ),
    (
        ("create user", "create role", "alter user", "alter role"),
        rf"(?i:\b(?:CREATE|ALTER)\s{{1,9}}(?:ROLE|USER)\s[^;]{{1,200}}?\bPASSWORD\s{{1,9}})[\"']{_WORD}",
    ),
    (("use",), rf"\bnet{_GAP}use{_GOES_ON}/user:[^\s\"']{{1,100}}{_GAP}(?!/){_WORD}"),
    (("use",), rf"\bnet{_GAP}use{_GOES_ON}\\\\[^\s\"',]{{3,100}}{_GAP}(?!/){_WORD}{_GAP}/user:"),
)
_COMMANDS: Final = tuple((hints, re.compile(pattern)) for hints, pattern in _OPTIONS)
_HEADER: Final = re.compile(
    r"(?:-H|--header)[ =]{0,3}(?:\\{0,7}[\"'])([\w-]{1,60}):[ \t]{0,9}([^\"'\\\r\n]{1,4000})"
)
# What stands behind a command that asks for its password, in a document: the next member's name.
_IS_NAME: Final = re.compile(r"\\{0,7}[\"']\s{0,9}:")
_SIGNS: Final = " |;&<>\\"
_LONGEST_WORD: Final = 300
# What is left of a text in quotes that ends in the same line.
_INSIDE: Final = {
    quote: re.compile(rf"(?:[^{quote}\n\\]|\\[^{quote}\n]){{1,200}}(?=\\{{0,7}}{quote})") for quote in "\"'"
}
# In a Dockerfile, Apache's settings, and shells that set variables without a sign.
_VARIABLE: Final = re.compile(
    rf"(?<![^\s\"'`+:-])(?:ENV|SetEnv|setenv|setx|set -gx)[ \t]{{1,9}}(\w{{2,60}})[ \t]{{1,9}}{_QUOTE}{_WORD}"
)
_PAIR: Final = re.compile(
    r"\b(?:user(?:name)?|login)\b[ \t]{0,4}[:=]?[ \t]{0,4}[\"']?[^\s\"'`\\]{1,60}[\"']?[\s,;/|]{1,5}(?:and )?"
    r"pass\b[ \t]{0,4}([:=]?)[ \t]{0,4}[\"']?([^\s\"'`\\,;]{4,200})",
    re.IGNORECASE,
)
# A name and a value that a program is given together: a header, a variable, a setting.
_CALL: Final = re.compile(
    r"\(\s{0,9}\\{0,7}[\"']([\w -]{2,60})\\{0,7}[\"']\s{0,9},\s{0,9}\\{0,7}[\"']"
    r"((?:(?i:bearer|basic|token) )?(?!-)[^\s\"'\\]{1,4000})(?=\\{0,7}[\"'])"
)
_HINT: Final = re.compile(
    r"mysql|mariadb|curl|wget|sshpass|redis-cli|\blogin\b|mongo|ldap|smb|rpcclient|sqlcmd|osql|\bbcp\b|plink|pscp|psftp|"
    r"openssl|htpasswd|rabbitmqctl|password-stdin|l?ftp|"
    r"freerdp|securestring|machine\s|default\s{1,60}login|\benv[ \t]|setenv|setx|set -gx|"
    r"identified\s|(?:create|alter)\s|"
    r"(?:define|setdefault|set|put|add|append|env|header|item|property)\(|"
    r"\b7z|zip\b|\bnet\b|(?:-h|--header)[ =]{0,3}\\{0,7}[\"']|\bpass\b"
)


def may_have_passwords(lowered: str) -> bool:
    """Whether a text, in lower case, has anything in it that these rules start from."""
    return _HINT.search(lowered) is not None


def passwords(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a text holds a password because of the command that it is in: start, end, and what it is."""
    if not may_have_passwords(lowered):
        return
    for hints, pattern in _COMMANDS:
        if any(hint in lowered for hint in hints):
            for match in pattern.finditer(text):
                if not is_placeholder(match[1]) and not _IS_NAME.match(text, match.end(1)):
                    yield match.start(1), _end_of_quoted(text, *match.span(1)), "a password of a command"
    if "(" in text:
        for match in _CALL.finditer(text):
            if (
                is_secret_name(match[1])
                and not is_placeholder(match[2])
                and folded(match[1]) != folded(match[2])
            ):
                yield *match.span(2), f"a value named {match[1]!r}"
    if "-h" in lowered:
        for match in _HEADER.finditer(text):
            if is_secret_header(match[1]) and not is_placeholder(match[2]):
                yield *match.span(2), f"a header named {match[1]!r}"
    if any(hint in lowered for hint in ("env ", "env\t", "setx", "set -gx")):
        for match in _VARIABLE.finditer(text):
            if is_secret_name(match[1]) and not is_placeholder(match[2]):
                yield *match.span(2), f"a value named {match[1]!r}"
    if "pass" in lowered:
        for match in _PAIR.finditer(text):
            mixed = any(map(str.isdigit, match[2])) and any(map(str.isalpha, match[2]))
            if mixed and not is_placeholder(match[2]):
                yield *match.span(2), "a password beside a login"


def _end_of_quoted(text: str, start: int, end: int) -> int:
    """Return where a password ends that is in quotes, and goes on behind a sign that ends a word which is in none."""
    if end == len(text) or text[end] not in _SIGNS:
        return end
    word = text[max(0, start - _LONGEST_WORD) : start].rpartition("\n")[2].split(" ")[-1]
    for quote, inside in _INSIDE.items():
        more = inside.match(text, end) if word.count(quote) % 2 else None
        if more is not None:
            return more.end()
    return end
