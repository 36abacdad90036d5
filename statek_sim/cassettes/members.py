"""The members of the JSON in a text: whole documents, lines of them, streams of events, or what was cut off.

A reader of tokens and not of documents: it makes of every text what can be made of it, in one pass and without
recursion, and knows where each value stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from statek_sim.cassettes.view import View, unescaped

Label = tuple[str | int, ...]
"""Keys and positions from the top of a document."""

_MOST_OF_EVENT: Final = 100
"""Texts at different places that an event of a stream has, for what is left of one that was cut off."""
MOST_LEVELS: Final = 100
"""Objects and lists in one another that are told apart; what is deeper counts as in the deepest."""

_TOKEN: Final = re.compile(
    r'"(?P<text>(?:[^"\\\n]++|\\[^\n])*+)(?P<end>"?)(?P<colon>\s*:)?|(?P<open>[{\[])|(?P<close>[}\]])|(?P<comma>,)|'
    r'(?P<bare>[^\s"{}\[\],:](?:\n(?!\r?\n)|[^"{}\[\],:\n]++)*+)|:'
)
# Words without quotes come in rows, which a blank line ends; of those that are in a list only numbers count.
_WORD: Final = re.compile(r'[^\s"{}\[\],:]++')
_NUMBER: Final = re.compile(r'(?<![^\s"{}\[\],:])-?\d[\d.eE+-]*+(?![^\s"{}\[\],:])')
# The quote that ends a text whose start was cut off, with what follows it.
_END_OF_CUT: Final = re.compile(r'(?:[^"\\]|\\.)*+"(?=\s*[,:}\]])', re.DOTALL)
_EVENT: Final = re.compile(r'(?:data|event|id|retry)(?![^\s"{}\[\],:])')
_BLANK_LINE: Final = ("\n\n", "\n\r\n")
# Whatever is no document of its own: the text of one comes in pieces that begin with anything.
_PLAIN_DATA: Final = re.compile(r"^data: ?(?!(?:\{.*\}|\[.*\]|\".*\"|)\r?$)(.*?)\r?$", re.MULTILINE)
_DATA_IN_A_ROW: Final = re.compile(r"^data:.*\ndata:", re.MULTILINE)
_DATA_WITH_END: Final = re.compile(r"^(data: ?)(.*\n?)", re.MULTILINE)
_PIECES: Final = "top_logprobs"
_TOKENS: Final = "tokens"
_SORTS: Final = ("index", "output_index", "content_index", "item_id", "type")
"""Members that tell which of several texts a piece belongs to."""


@dataclass(slots=True, eq=False)
class Frame:
    """An object or a list that is open, or was: its place, what it has, and the name whose value it is."""

    label: Label
    is_list: bool
    above: Frame | None
    key: str | None = None
    count: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    nearest: tuple[Frame | None, bool] | None = None
    """What readers of names find out once: see `reading`."""
    sort: Label | None = None
    """What tells its texts from others at the same place, found out once: see `_sort`."""

    @property
    def name(self) -> str | None:
        """The name of the member that this is, or is in as an entry of a list."""
        frame: Frame | None = self
        while frame is not None and frame.label and isinstance(frame.label[-1], int):
            frame = frame.above
        return str(frame.label[-1]) if frame is not None and frame.label else None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text or a bare word of a document: what it is in, its key there, and where it stands in the view.

    `is_piece` is a key that is a piece of a reply itself, as in the log probabilities of completions.
    """

    frame: Frame
    key: str | int
    start: int
    end: int
    quoted: bool
    document: int
    is_piece: bool = False

    @property
    def name(self) -> str | None:
        """The name of the member that this is, or is in as an entry of a list."""
        return self.key if isinstance(self.key, str) else self.frame.name

    @property
    def label(self) -> Label:
        """Where this is in its document."""
        return (*self.frame.label, self.key)


def start_of_members(text: str) -> int:
    """Return where a document goes on whose start was cut off, within a text of it; 0 for one that has its start."""
    cut = None if text.lstrip()[:1] in ("", "{", "[") else _END_OF_CUT.match(text)
    return cut.end() if cut is not None else 0


def leaves(text: str) -> list[Leaf]:
    """Return what a text's documents hold, in order."""
    found: list[Leaf] = []
    document = ignored = 0
    start = start_of_members(text)
    frame = Frame((), False, None) if start else None
    if frame is not None and text[start:].lstrip()[:1] == ":":
        frame.key = unescaped(text[: start - 1])
    elif start:
        found.append(Leaf(Frame((), False, None), "", 0, start - 1, True, document))
    for match in _TOKEN.finditer(text, start):
        kind = match.lastgroup
        if match["text"] is not None:
            if frame is None and match["colon"]:
                # A member of what was opened in the part that was cut off.
                document += 1
                frame = Frame((), False, None)
            if frame is None:
                document += 1
                found.append(Leaf(Frame((), False, None), "", *match.span("text"), True, document))
            elif match["colon"] and not frame.is_list:
                frame.key = unescaped(match["text"])
                frame.keys.add(frame.key)
                if _PIECES in frame.label:
                    found.append(Leaf(frame, frame.key, *match.span("text"), True, document, is_piece=True))
            elif frame.is_list or frame.key is not None:
                _add(found, frame, match.span("text"), match["text"], quoted=True, document=document)
        elif kind == "open":
            if frame is not None and len(frame.label) >= MOST_LEVELS:
                ignored += 1
                continue
            if frame is None or (frame.is_list and not frame.label and frame.above is None):
                document += 1
            frame = _opened(frame, is_list=match[0] == "[")
        elif kind == "close" and ignored:
            ignored -= 1
        elif kind == "close":
            frame = frame.above if frame is not None else None
        elif kind == "bare" and frame is not None:
            if _EVENT.match(text, match.start()) and text.endswith(_BLANK_LINE, 0, match.start()):
                frame = None
            elif frame.key is not None or frame.is_list:
                _add_bare(found, frame, text, match, document)
        elif kind == "comma" and frame is not None and frame.is_list:
            frame.count += 1
    return found


def _add(
    found: list[Leaf], frame: Frame, span: tuple[int, int], text: str, *, quoted: bool, document: int
) -> None:
    key: str | int = frame.count if frame.is_list else frame.key or ""
    if isinstance(key, str):
        frame.texts[key] = unescaped(text)
    found.append(Leaf(frame, key, *span, quoted, document))
    frame.key = None


def _add_bare(found: list[Leaf], frame: Frame, text: str, row: re.Match[str], document: int) -> None:
    """Add the first of a row of words to what it is called; of a list the first that its document has, and numbers."""
    start = row.start()
    if not frame.is_list or not found or found[-1].document != document:
        first = _WORD.match(text, start)
        assert first is not None, "a row has a word"
        _add(found, frame, first.span(), first[0], quoted=False, document=document)
        start = first.end()
    if frame.is_list:
        for number in _NUMBER.finditer(text, start, row.end()):
            _add(found, frame, number.span(), number[0], quoted=False, document=document)


def _opened(frame: Frame | None, *, is_list: bool) -> Frame:
    if frame is None:
        return Frame((), is_list, None)
    if frame.is_list and not frame.label and frame.above is None:
        # The entries of a list at the top are documents of their own: Gemini's streams without SSE.
        return Frame((), is_list, frame)
    label = (*frame.label, frame.count if frame.is_list else frame.key or "")
    frame.key = None
    return Frame(label, is_list, frame)


def columns(view: View, found: list[Leaf]) -> Iterator[View]:
    """Yield the texts that documents have at the same place, joined.

    A model writes a key as it writes all else, some characters per event. What tells calls and blocks apart separates
    them; because it may tell less, or more, than one thinks, they are joined without it too.
    """
    if found and found[-1].document > found[0].document:
        by_label: dict[Label, list[Leaf]] = {}
        for leaf in found:
            if leaf.quoted and not leaf.is_piece:
                by_label.setdefault(leaf.label, []).append(leaf)
        for group in _with_cut(by_label, found[0].document):
            if len(group) > 1:
                yield _joined(view, group)
                sorts: dict[Label, list[Leaf]] = {}
                for leaf in group:
                    sorts.setdefault(_sort(leaf), []).append(leaf)
                if len(sorts) > 1:
                    yield from (_joined(view, part) for part in sorts.values() if len(part) > 1)
    if "data:" in view.text:
        pieces = [view.cut(*match.span(1)) for match in _PLAIN_DATA.finditer(view.text)]
        if len(pieces) > 1:
            yield View.joined(pieces)
            if _DATA_IN_A_ROW.search(view.text):
                # The lines of one event.
                yield View.joined([view.cut(*match.span(2)) for match in _DATA_WITH_END.finditer(view.text)])


def _with_cut(by_label: dict[Label, list[Leaf]], first: int) -> Iterator[list[Leaf]]:
    """Yield what is at each place, with what the first document has there whose start may have been cut off.

    Of a place in that one the last steps are left, and of the first of these the end of its name: `es.0.delta.content`
    of `choices.0.delta.content`.
    """
    cut = {label: group for label, group in by_label.items() if all(leaf.document == first for leaf in group)}
    if len(cut) > _MOST_OF_EVENT:
        cut = {}
    for label, group in by_label.items():
        before = [] if label in cut else [each for end, each in cut.items() if _ends_with(label, end)]
        yield from ([*each, *group] for each in before or [[]])


def _ends_with(label: Label, end: Label) -> bool:
    whole = label[-len(end) :]
    return len(whole) == len(end) and whole[1:] == end[1:] and str(whole[0]).endswith(str(end[0]))


def scored(view: View, found: list[Leaf]) -> Iterator[View]:
    """Yield the replies that log probabilities add up to, piece by piece.

    A piece stands for all that is said of it: its bytes, and what might have been in its place.
    """
    replies: dict[Label, dict[tuple[int, Label], list[Leaf]]] = {}
    for leaf in found:
        label = leaf.label
        named = next((at for at, step in enumerate(label) if "logprob" in str(step)), len(label))
        end = next((at for at in range(named, len(label)) if isinstance(label[at], int)), None)
        if leaf.is_piece and {"token", "logprob"} <= leaf.frame.keys:
            # The chat's log probabilities name what they say of a piece.
            continue
        if end is not None and (leaf.quoted or "bytes" in label[end:]):
            if label[end - 1] == _PIECES and label[end + 1 :]:
                # What might have been in the place of one of the `tokens` beside it.
                label = (*label[: end - 1], _TOKENS, *label[end:])
            entries = replies.setdefault(label[:end], {})
            entries.setdefault((leaf.document, label[: end + 1]), []).append(leaf)
    for reply in replies.values():
        pieces = [_piece(view, place, leaves) for (_, place), leaves in reply.items()]
        yield View.joined(pieces)


def _piece(view: View, place: Label, found: list[Leaf]) -> View:
    """Return the piece of a reply that an entry of log probabilities is about."""
    token = next((leaf for leaf in found if leaf.quoted and leaf.label in (place, (*place, "token"))), None)
    # Without `tokens` the likeliest is taken for what was said.
    token = token or next((leaf for leaf in found if leaf.is_piece), None)
    if token is None:
        return View.of("")
    others = [each for leaf in found if leaf is not token for each in view.ranges(leaf.start, leaf.end)]
    return view.cut(token.start, token.end).unescaped().with_aside(others)


def _sort(leaf: Leaf) -> Label:
    """Return what tells a text of a stream from others at the same place."""
    frames: list[Frame] = []
    frame: Frame | None = leaf.frame
    while frame is not None and frame.sort is None:
        frames.append(frame)
        frame = frame.above
    sort = () if frame is None or frame.sort is None else frame.sort
    for each in reversed(frames):
        sort = each.sort = (*(each.texts.get(name, "") for name in _SORTS), *sort)
    return sort


def _joined(view: View, group: list[Leaf]) -> View:
    pieces = [view.cut(leaf.start, leaf.end) for leaf in group]
    return View.joined([piece.unescaped() if "\\" in piece.text else piece for piece in pieces])
