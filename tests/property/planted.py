"""Secrets planted in exchanges: every place that docs/cassettes.md claims is a row here.

A row makes an exchange with one secret in it. `sight` is what a reader of the cassette could see of it, by undoing
every encoding and joining every stream: written without the code under test.
"""

from __future__ import annotations

import gzip
import html
import json
import quopri
import re
import string
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Exchange, Headers, Request, Response

URI: Final = "https://api.test/v1/chat"
ALNUM: Final = string.ascii_letters + string.digits
Row = Callable[[Random, str], Exchange]


def core(random: Random, size: int) -> str:
    """Return letters and digits, with a digit in each half so that no word is like it."""
    drawn = [random.choice(ALNUM) for _ in range(size)]
    drawn[random.randrange(0, 4)] = random.choice(string.digits)
    drawn[size - 1 - random.randrange(0, 4)] = random.choice(string.digits)
    return "".join(drawn)


KEYS: Final = (
    "sk-proj-{48}", "sk-ant-api03-{60}-_AA", "sk-or-v1-{64}", "AIza{35}", "gsk_{52}", "xai-{80}", "pplx-{48}",
    "hf_{34}", "nvapi-{60}", "ghp_{36}", "github_pat_{82}", "glpat-{20}", "xoxb-{40}", "npm_{36}", "sk_live_{24}",
    "whsec_{32}", "SG.{22}.{43}", "eyJ{30}.eyJ{40}.{43}",
    "AQ.Ab{48}", "dckr_pat_{27}", "figd_{40}", "sb_secret_{31}", "re_{8}_{24}", "phx_{43}", "rnd_{28}",
    "-----BEGIN RSA PRIVATE KEY-----\n{64}\n{64}\n-----END RSA PRIVATE KEY-----",
)  # fmt: skip


def shaped(random: Random) -> str:
    """Return a key of a shape that everyone knows."""
    pattern = random.choice(KEYS)
    return re.sub(r"\{(\d+)\}", lambda match: core(random, int(match[1])), pattern)


def odd(random: Random) -> str:
    """Return a password: short or long, maybe with what encodings escape."""
    made = core(random, random.choice([8, 9, 11, 14, 24]))
    if random.random() < 0.5:
        at = random.randrange(5, len(made) - 2) if len(made) > 8 else 5
        made = (
            made[:at]
            + random.choice(['"', "\\", "&", "%", "+", "/", "ż", "=", "'", "<", "😀", "#", " "])
            + made[at:]
        )
    return made


WORDS: Final = (
    "the",
    "key",
    "is:",
    "hello",
    'say "hi"',
    "a\\b",
    "line\nnext",
    "x=1",
    "{}",
    "[1]",
    "żółw",
    "100%",
    "tab\t",
    "data:",
)


def around(random: Random, secret: str) -> str:
    """Return a text with the secret in it, as a word of its own."""
    before = " ".join(random.choices(WORDS, k=random.randrange(4)))
    after = " ".join(random.choices(WORDS, k=random.randrange(4)))
    return (
        before
        + random.choice([" ", "\n", "\t", "("])
        + secret
        + random.choice([" ", "\n", ")", ", "])
        + after
    )


def pieces(random: Random, text: str) -> list[str]:
    """Return a text in small pieces."""
    found, at = [], 0
    while at < len(text):
        size = random.randint(1, 7)
        found.append(text[at : at + size])
        at += size
    return found


def exchange(
    sent: bytes | str = b"", said: bytes | str = b"", *, uri: str = URI, kind: str = "application/json",
    headers: Headers = (), answer: Headers = (), reason: str = "OK", said_kind: str = "application/json",
) -> Exchange:  # fmt: skip
    """Return an exchange."""
    return Exchange(
        request=Request(
            method="POST", uri=uri, headers=(("content-type", kind), *headers),
            body=sent.encode() if isinstance(sent, str) else sent,
        ),
        response=Response(
            status=200, reason=reason, headers=(("content-type", said_kind), *answer),
            body=said.encode() if isinstance(said, str) else said,
        ),
    )  # fmt: skip


def dumps(random: Random, value: object) -> str:
    """Return JSON in any of the ways in which it is written."""
    return json.dumps(
        value, ensure_ascii=random.random() < 0.5, indent=random.choice([None, None, 1]),
        separators=random.choice([(",", ":"), (", ", ": ")]),
    )  # fmt: skip


def chat(text: object) -> dict[str, object]:
    return {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}]}


def json_text(random: Random, secret: str) -> Exchange:
    return exchange(
        dumps(random, chat(around(random, secret))),
        dumps(random, {"choices": [{"message": {"content": secret}}]}),
    )


def json_nested(random: Random, secret: str) -> Exchange:
    inner = dumps(random, {"note": around(random, secret), "n": [1]})
    for _ in range(random.randint(1, 3)):
        inner = dumps(random, {"arguments": inner})
    return exchange(inner, inner)


def json_key(random: Random, secret: str) -> Exchange:
    return exchange(dumps(random, {secret: 1, "a": {secret: "x"}}))


def json_cut(random: Random, secret: str) -> Exchange:
    body = dumps(random, chat(around(random, secret) + " and more words that go on"))
    return exchange(body[random.randrange(10) : len(body) - random.randrange(1, 9)])


def ndjson(random: Random, secret: str) -> Exchange:
    lines = [json.dumps({"content": around(random, secret)}), json.dumps({"done": True})]
    random.shuffle(lines)
    return exchange(said="\n".join(lines) + "\n", said_kind="application/x-ndjson")


def ndjson_pieces(random: Random, secret: str) -> Exchange:
    lines = [
        {"message": {"content": piece}, "done": False} for piece in pieces(random, around(random, secret))
    ]
    return exchange(
        said="\n".join(json.dumps(line) for line in lines) + "\n", said_kind="application/x-ndjson"
    )


def gemini_pieces(random: Random, secret: str) -> Exchange:
    entries = [
        {"candidates": [{"content": {"parts": [{"text": piece}]}}]}
        for piece in pieces(random, around(random, secret))
    ]
    return exchange(said=dumps(random, entries))


def events(values: list[object], end: str = "\n") -> str:
    return "".join(f"data: {json.dumps(value)}{end}{end}" for value in values) + f"data: [DONE]{end}{end}"


def sse_text(random: Random, secret: str) -> Exchange:
    text = (
        around(random, secret).replace("\n", " ") if "\n" not in secret else secret.replace("\n", "\ndata: ")
    )
    return exchange(said=f"event: x\ndata: {text}\n\n", said_kind="text/event-stream")


def sse_plain_pieces(random: Random, secret: str) -> Exchange:
    text = (
        around(random, secret.replace("\n", "").replace("\r", ""))
        .replace("\n", ".")
        .replace("{", "(")
        .replace("[", "(")
        .replace('"', ".")
    )
    return exchange(
        said="".join(f"data: {piece}\n\n" for piece in pieces(random, text)), said_kind="text/event-stream"
    )


def sse_pieces(random: Random, secret: str) -> Exchange:
    values: list[object] = [
        {"choices": [{"index": 0, "delta": {"content": piece}}]}
        for piece in pieces(random, around(random, secret))
    ]
    return exchange(said=events(values, random.choice(["\n", "\r\n"])), said_kind="text/event-stream")


def sse_pieces_cut(random: Random, secret: str) -> Exchange:
    one = sse_pieces(random, secret)
    body = one.response.body
    start = random.randint(1, body.index(b'"content": "') + len(b'"content": "'))
    return exchange(said=body[start:].decode(), said_kind="text/event-stream")


def sse_interleaved(random: Random, secret: str) -> Exchange:
    values: list[object] = []
    for number, piece in enumerate(pieces(random, around(random, secret))):
        values.append({"choices": [{"delta": {"content": piece}, "index": 1}]})
        if number % 2:
            values.append({"choices": [{"delta": {"content": "other"}, "index": 0}]})
    return exchange(said=events(values), said_kind="text/event-stream")


def sse_arguments(random: Random, secret: str) -> Exchange:
    arguments = dumps(random, {"text": around(random, secret), "n": 1})
    parts = pieces(random, arguments)
    values: list[object] = random.choice(
        [
            [
                {
                    "choices": [
                        {"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}}
                    ]
                }
                for part in parts
            ],
            [
                {
                    "type": "content_block_delta",
                    "index": 1,
                    "delta": {"type": "input_json_delta", "partial_json": part},
                }
                for part in parts
            ],
            [
                {
                    "type": "response.function_call_arguments.delta",
                    "item_id": "f",
                    "output_index": 0,
                    "delta": part,
                }
                for part in parts
            ],
        ]
    )
    return exchange(said=events(values), said_kind="text/event-stream")


def multipart(random: Random, secret: str, name: str = "note") -> Exchange:
    end = "\r\n"
    fields = [("purpose", "assistants"), (name, secret), ("file", "{}")]
    random.shuffle(fields)
    body = "".join(
        f'--BxB{end}Content-Disposition: form-data; name="{key}"{end}{end}{value}{end}'
        for key, value in fields
    )
    return exchange(body + f"--BxB--{end}", kind="multipart/form-data; boundary=BxB")


def quoted_printable(random: Random, secret: str) -> Exchange:
    """Lines of a part are cut wherever 76 characters are full; readers of mail put them together again."""
    text = quopri.encodestring(f"{'word ' * random.randrange(0, 14)}{secret} end".encode()).decode()
    header = random.choice(
        ('Content-Transfer-Encoding: "quoted-printable"', "content-transfer-encoding:\tQuoted-Printable")
    )
    header = random.choice((str, str.lower, str.upper, str.title))(header)
    body = (
        '--BxB\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
        f"{header}\r\n\r\n{text}\r\n--BxB--\r\n"
    )
    return exchange(body, kind="multipart/form-data; boundary=BxB")


def form(random: Random, secret: str, name: str = "note") -> Exchange:
    fields = [("model", "m"), (name, secret), ("x", "1")]
    random.shuffle(fields)
    body = "&".join(f"{quote_plus(key)}={quote_plus(value)}" for key, value in fields)
    return exchange(body, body, kind="application/x-www-form-urlencoded")


def address(random: Random, secret: str) -> Exchange:
    return exchange(uri=f"{URI}?a=1&q={quote(secret, safe='')}&b=2")


def address_twice(random: Random, secret: str) -> Exchange:
    inner = f"https://h.test/?q={quote(secret, safe='')}&x=1"
    return exchange(
        uri=f"{URI}?next={quote(inner, safe='')}", answer=(("location", f"{URI}?to={quote(inner, safe='')}"),)
    )


def in_header(random: Random, secret: str) -> Exchange:
    text = secret.replace("\n", " ") if "PRIVATE" not in secret else "none"
    return exchange(headers=(("x-note", f"see {text} there"),), answer=(("x-echo", text),))


def header_folded(random: Random, secret: str) -> Exchange:
    if "PRIVATE" in secret:
        return exchange()
    at = random.randrange(2, len(secret) - 1)
    return exchange(headers=(("x-note", f"see {secret[:at]}\r\n {secret[at:]} there"),))


def utf16(random: Random, secret: str) -> Exchange:
    text = dumps(random, chat(around(random, secret)))
    codec = random.choice(["utf-16", "utf-16-le", "utf-16-be"])
    return exchange(said=text.encode(codec), said_kind=f"application/json; charset={codec}")


def gzipped(random: Random, secret: str) -> Exchange:
    body = gzip.compress(dumps(random, chat(around(random, secret))).encode(), mtime=0)
    return exchange(
        body, body, headers=(("content-encoding", "gzip"),), answer=(("Content-Encoding", "gzip"),)
    )


def in_base64(random: Random, secret: str) -> Exchange:
    return exchange(dumps(random, chat(b64encode(f"note: {secret} end".encode()).decode())))


def plain_text(random: Random, secret: str) -> Exchange:
    return exchange(said=around(random, secret), said_kind="text/plain")


def reason(random: Random, secret: str) -> Exchange:
    return exchange(reason=f"No {secret}".replace("\n", " ") if "PRIVATE" not in secret else "No")


def escaped(how: Row) -> Row:
    """Return a row whose JSON has escapes of letters in all its texts, names too."""

    def row(random: Random, secret: str) -> Exchange:
        def letter(match: re.Match[str]) -> str:
            return match[0] if len(match[0]) > 1 or random.random() < 0.7 else f"\\u{ord(match[0]):04x}"

        def text(match: re.Match[str]) -> str:
            return re.sub(r"\\u....|\\.|[A-Za-z]", letter, match[0])

        def body(plain: bytes) -> bytes:
            return re.sub(r'"(?:[^"\\]|\\.)*"', text, plain.decode()).encode()

        one = how(random, secret)
        return replace(
            one,
            request=replace(one.request, body=body(one.request.body)),
            response=replace(one.response, body=body(one.response.body)),
        )

    return row


ANYWHERE: Final[dict[str, Row]] = {
    "pieces in events with escaped names": escaped(sse_pieces),
    "a text in JSON": json_text,
    "JSON in a string": json_nested,
    "a name of a member": json_key,
    "JSON that was cut off": json_cut,
    "lines of JSON": ndjson,
    "pieces in lines of JSON": ndjson_pieces,
    "pieces in Gemini's list": gemini_pieces,
    "an event": sse_text,
    "pieces in events without JSON": sse_plain_pieces,
    "pieces in events": sse_pieces,
    "pieces in events of which the first was cut off": sse_pieces_cut,
    "pieces in events of several choices": sse_interleaved,
    "pieces of a tool's arguments": sse_arguments,
    "a field of a multipart form": multipart,
    "a part in quoted-printable": quoted_printable,
    "a field of a form": form,
    "a parameter of an address": address,
    "an address in a parameter": address_twice,
    "a header": in_header,
    "a folded header": header_folded,
    "UTF-16": utf16,
    "gzip": gzipped,
    "Base64": in_base64,
    "a text": plain_text,
    "the reason": reason,
}
"""Where keys of a known shape are found."""

NAMES: Final = (
    "password", "passwd", "api_key", "apiKey", "openai_api_key", "db_password", "client_secret", "access_token",
    "token", "refreshToken", "X-Api-Key", "private_key", "secret", "user_password", "aws_secret_access_key",
    "passphrase", "db_pass", "SMTP_PASS", "jwt", "MYSQL_PWD", "bearer",
)  # fmt: skip


def member(random: Random, secret: str) -> Exchange:
    value: dict[str, object] = {"a": 1, random.choice(NAMES): secret, "z": "end"}
    body = dumps(random, {"deep": [value]})
    return exchange(body, body)


def member_of_member(random: Random, secret: str) -> Exchange:
    inner: object = random.choice([{"value": secret}, [secret], {"a": [{"b": secret}]}, [[secret]]])
    return exchange(dumps(random, {random.choice(NAMES): inner, "z": 1}))


def member_nested(random: Random, secret: str) -> Exchange:
    inner = dumps(random, {random.choice(NAMES): secret, "n": 1})
    for _ in range(random.randint(1, 3)):
        inner = dumps(random, {"arguments": inner})
    return exchange(inner)


def member_cut(random: Random, secret: str) -> Exchange:
    body = json.dumps({"text": 'a "quoted" text', random.choice(NAMES): secret})
    return exchange(body[: len(body) - random.choice([1, 2, 3])])


def member_beside(random: Random, secret: str) -> Exchange:
    entry = {"name": random.choice(NAMES), "value": secret}
    return exchange(dumps(random, {"fields": [{"name": "page", "value": "2"}, entry]}))


def member_in_pieces(random: Random, secret: str) -> Exchange:
    parts = pieces(random, dumps(random, {"n": 1, random.choice(NAMES): secret}))
    values: list[object] = [
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": part},
        }
        for part in parts
    ]
    return exchange(said=events(values), said_kind="text/event-stream")


def named_form(random: Random, secret: str) -> Exchange:
    name = random.choice(NAMES)
    return form(random, secret, random.choice([name, f"user[{name}]", f"user.{name}", f"a[b][{name}]"]))


def named_multipart(random: Random, secret: str) -> Exchange:
    name = random.choice(NAMES)
    return multipart(random, secret, random.choice([name, f"user[{name}]"]))


def named_parameter(random: Random, secret: str) -> Exchange:
    sign = random.choice(["?", "#", "?a=1&"])
    return exchange(
        uri=f"{URI}{sign}{random.choice((*NAMES, 'key', 'sig', 'auth'))}={quote(secret, safe='')}"
    )


def parameter_twice(random: Random, secret: str) -> Exchange:
    value = quote(quote(secret, safe=""), safe="")
    return exchange(uri=f"{URI}?a=1&{random.choice(['api_key', 'password', 'user[token]'])}={value}")


def login(random: Random, secret: str) -> Exchange:
    user = random.choice(["", "me", "a.b"])
    uri = f"https://{user}:{quote(secret, safe='')}@h.test/p"
    return exchange(dumps(random, chat(f"see {uri} there")), uri=uri, answer=(("location", uri),))


def telling_header(random: Random, secret: str) -> Exchange:
    name = random.choice(
        ["Authorization", "X-Api-Key", "Cookie", "X-Amz-Security-Token", "x-goog-api-key", "api-key"]
        + [name.replace("_", "-") for name in NAMES]
    )
    return exchange(headers=((name, secret),), answer=(("Set-Cookie", f"s={secret}; Path=/"),))


def assigned(random: Random, secret: str) -> Exchange:
    value = re.sub(r"[^A-Za-z0-9]", "", secret)
    name = random.choice(["DB_PASSWORD", "OPENAI_API_KEY", "export TOKEN", "client_secret", "password"])
    # Behind the first digit: `word(value)` is a call.
    at = random.randrange(4, len(value) - 2)
    bracketed = value[:at] + random.choice("()[]{}<>|") + value[at:] + random.choice(["", "x)", "]9", "}"])
    line = random.choice(
        [
            f"{name}={value}",
            f'{name}="{value}"',
            f"{name} = '{value}'",
            f"{name}: {value}",
            f"{name}={bracketed}",
        ]
    )
    return exchange(
        dumps(random, chat(f"my settings:\n{line}\nDEBUG=1")), said=f"a\n{line}\n", said_kind="text/plain"
    )


def element(random: Random, secret: str) -> Exchange:
    name = random.choice(["Password", "password", "soap:Password", "x-1:db_password", "apiKey"])
    kind = random.choice(["", "", ' type="text"', "\n  xsi:type='xs:string'\t"])
    inner = random.choice(
        [
            html.escape(secret),
            f"<![CDATA[{secret}]]>",
            f" <value>{html.escape(secret)}</value>",
            f"\n<a><b>1</b>{html.escape(secret)}<c/></a>\n",
        ]
    )
    said = f"<r><{name}{kind}>{inner}</{name}><n>1</n></r>"
    return exchange(said=said, said_kind="application/xml")


def element_named(random: Random, secret: str) -> Exchange:
    name, kind = random.choice(["Password", "db_password", "apiKey"]), random.choice(["key", "name", "id"])
    said = random.choice(
        [
            f'<string name="{name}">{html.escape(secret)}</string>',
            f'<add {kind}="{name}" value="{html.escape(secret)}"/>',
            f"<input type='text' {kind}='{name}' value='{html.escape(secret)}'>",
        ]
    )
    return exchange(dumps(random, chat(f"see {said}")), said=f"<r>{said}</r>", said_kind="application/xml")


def element_cut(random: Random, secret: str) -> Exchange:
    said = f"<r><a>1</a><{random.choice(['password', 'x:apiKey'])}>{html.escape(secret)}"
    return exchange(said=said, said_kind="application/xml")


def table(random: Random, secret: str) -> Exchange:
    name = random.choice(["password", "db_password", "API Token", "client_secret"])
    # What has no digit may be any word there.
    word = re.sub(r"[^A-Za-z0-9]", "", secret) + "7"
    quoted = re.sub(r"[\r\n]", "", secret).replace('"', '""') + "7"
    said = random.choice(
        [
            f'id,{name},n\n1,"{quoted}",2\n',
            f"id;{name}\r\n1;{word}\r\n",
            f"id\t{name}\n1\t{word}\n",
            f"| id | {name} |\n|---|:-:|\n| 1 | {word} |\n",
            f"| setting | value |\n|---|---|\n| `{name}` | {word} |\n",
            f" id | {name} \n----+------\n  1 | {word}\n(1 row)\n",
            f"+----+----+\n| id | {name} |\n+----+----+\n| 1 | {word} |\n+----+----+\n",
            f"│ id │ {name} │\n├────┼────┤\n│ 1 │ {word} │\n",
        ]
    )
    return exchange(dumps(random, chat(said)), said=f"It is:\n{said}", said_kind="text/plain")


def parameter_of_path(random: Random, secret: str) -> Exchange:
    pair = f"{random.choice(NAMES)}={quote(secret, safe='')}"
    return exchange(uri=random.choice([f"{URI}/{pair}/x?b=2", f"{URI};{pair};b=2", f"{URI}/{pair}"]))


def beside(random: Random, secret: str) -> Exchange:
    line = random.choice(
        [
            f"the api key is {secret}.",
            f"token: {secret}",
            f"my password {secret}",
            f"key = {secret}",
            f"Bearer {secret}",
        ]
    )
    return exchange(dumps(random, chat(f"Hello, {line} Thanks")), said=f"a {line}\nb", said_kind="text/plain")


def member_in_form(random: Random, secret: str) -> Exchange:
    how = random.choice([member, member_of_member, member_beside])(random, secret)
    written = (how.request.body or how.response.body).decode()
    fields = [("note", 'say "hi'), ("document", written), ("n", "1")]
    random.shuffle(fields)
    return exchange(
        "&".join(f"{key}={quote(value, safe='')}" for key, value in fields),
        kind="application/x-www-form-urlencoded",
    )


def list_cut(random: Random, secret: str) -> Exchange:
    body = json.dumps({"note": "said before", random.choice(NAMES): ["x", secret], "z": "end"})
    return exchange(said=body[random.choice([1, 5, 12, 20, 22]) :])


NAMED: Final[dict[str, Row]] = {
    "a member with an escaped name": escaped(member),
    "a value beside its escaped name": escaped(member_beside),
    "JSON in a field of a form": member_in_form,
    "a list whose start was cut off": list_cut,
    "a member": member,
    "what a member holds": member_of_member,
    "a member of JSON in a string": member_nested,
    "a member of JSON that was cut off": member_cut,
    "a value beside its name": member_beside,
    "a member in pieces": member_in_pieces,
    "a named field of a form": named_form,
    "a named field of a multipart form": named_multipart,
    "a named parameter": named_parameter,
    "a login in an address": login,
    "a header with a telling name": telling_header,
    "NAME=value": assigned,
    "an element": element,
    "an element with its name in an attribute": element_named,
    "an element that is cut off": element_cut,
    "a parameter of a path": parameter_of_path,
    "a table": table,
    "a parameter that is encoded twice": parameter_twice,
}
"""Where whatever stands under a telling name is found."""


def again(random: Random, secret: str, how: Callable[[Random, str], Exchange]) -> Exchange:
    """Return an exchange that was sent with a secret which comes again somewhere."""
    one = how(random, secret)
    kind = random.randrange(5)
    headers, uri, body = one.request.headers, one.request.uri, one.request.body
    if kind == 0:
        headers = (*headers, ("Authorization", f"Bearer {secret}"))
    elif kind == 1:
        headers = (*headers, ("Authorization", f"Basic {b64encode(f'me:{secret}'.encode()).decode()}"))
    elif kind == 2:
        uri = f"{uri}{'&' if '?' in uri else '?'}api_key={quote(secret, safe='')}"
    elif kind == 3 and not body:
        body = json.dumps({"password": secret}).encode()
    elif kind == 4 and not body:
        body = f"a=1&password={quote_plus(secret)}".encode()
        headers = (("content-type", "application/x-www-form-urlencoded"),)
    else:
        headers = (*headers, ("X-Api-Key", secret))
    return Exchange(
        request=Request(method="POST", uri=uri, headers=headers, body=body), response=one.response
    )


def sight(one: Exchange) -> str:
    """Return all that a reader could see of an exchange: its file, its bodies, decoded in every way, and joined."""
    texts = [rendered([one])]
    for headers, body in ((one.request.headers, one.request.body), (one.response.headers, one.response.body)):
        texts.append(body.decode("utf-8", "replace"))
        if b"\x00" in body:
            texts += [body.decode(codec, "replace") for codec in ("utf-16-le", "utf-16-be")]
        del headers
    texts += [value for name, value in (*one.request.headers, *one.response.headers)]
    joined = [_joined(text) for text in texts]
    texts += [
        quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace") for text in texts[1:3]
    ]
    seen = [*texts, *joined]
    for _ in range(4):
        seen = [*seen, *(_unescaped(text) for text in seen[-8:])]
    seen += [unquote(text) for text in seen] + [unquote_plus(unquote(text)) for text in seen]
    seen += [html.unescape(text) for text in seen if "&" in text]
    seen += [_opened(token) for text in texts for token in re.findall(r"[A-Za-z0-9+/]{16,}={0,2}", text)]
    return "\n".join(seen) + re.sub(r"\r?\n[ \t]", "", "\n".join(texts))


def _joined(text: str) -> str:
    """Return the texts of a stream's events, lines or entries, one after the other."""
    parts: list[str] = []
    lines = [
        line[5:].strip() if line.startswith("data:") else line for line in text.replace("\r", "").split("\n")
    ]
    try:
        values = json.loads(text)
        values = values if isinstance(values, list) else []
    except ValueError:
        values = []
        for line in lines:
            try:
                values.append(json.loads(line))
            except ValueError:
                parts.append(line)
    for value in values:
        _collect(value, parts)
    return "".join(parts)


def _collect(value: object, parts: list[str]) -> None:
    if isinstance(value, str) and value not in ("content_block_delta", "input_json_delta", "f", "other"):
        if not value.startswith("response."):
            parts.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, parts)
    elif isinstance(value, list):
        for item in value:
            _collect(item, parts)


def _unescaped(text: str) -> str:
    plain = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else plain.get(match[2], match[2]),
        text,
    )


def _opened(token: str) -> str:
    try:
        return b64decode(token + "=" * (-len(token) % 4)).decode("utf-8", "replace")
    except ValueError:
        return ""


def is_whole(before: Exchange, after: Exchange) -> bool:
    """Whether what was JSON is JSON still, in bodies and in events."""
    bodies = ((before.request.body, after.request.body), (before.response.body, after.response.body))
    return all(_documents(old) == _documents(new) for old, new in bodies if not old.startswith(b"\x1f\x8b"))


def _documents(body: bytes) -> int:
    """Return how many lines of a body are JSON; all of it counts as one more."""
    text = body.decode("utf-16" if body.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8", "replace")
    lines = [text, *(line.removeprefix("data:") for line in re.split(r"\r?\n", text))]
    return sum(map(_is_json, lines))


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def is_seen(secret: str, text: str) -> str | None:
    """Return the part of a secret that can be seen, if any: five characters that no word has."""
    plain: str = re.sub(r"-----[A-Z ]+-----|^(?:sk-proj-|sk-ant-api03-|sk-or-v1-|github_pat_)", "", secret)
    runs = [run for run in re.findall(r"[A-Za-z0-9]{5,}", plain) if any(map(str.isdigit, run))]
    for run in runs:
        for part in (run[:5], run[-5:]):
            if any(map(str.isdigit, part)) and part in text:
                return str(part)
    return None
