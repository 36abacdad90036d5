"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): write them, read them."""

from __future__ import annotations

from collections.abc import Iterator


def event(data: str, *, name: str | None = None) -> bytes:
    """Return one event. `data` is one line, as JSON is."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {data}\n\n".encode()


def events(stream: bytes) -> Iterator[str]:
    """Yield the data of each event; comments, names and events without data are passed over.

    The last event counts also when the blank line that ends it is missing: recordings get cut there.
    """
    lines: list[str] = []
    for line in [*stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
