"""Hostile replies of any size: shapes that make a parser slow, for its steps to be counted and a megabyte to be timed.

A shape is a beginning, a piece that is repeated (with a number in it where `{n}` stands, so that no two are equal), and
an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Shape:
    """One hostile shape."""

    piece: str
    start: str = ""
    end: str = ""

    def text(self, size: int) -> str:
        """Return a reply of about `size` characters."""
        if "{n}" not in self.piece:
            return self.start + self.piece * (size // len(self.piece)) + self.end
        return self.start + "".join(self._numbered(size)) + self.end

    def _numbered(self, size: int) -> Iterator[str]:
        made = number = 0
        while made < size:
            piece = self.piece.replace("{n}", str(number))
            made, number = made + len(piece), number + 1
            yield piece


_CALL: Final = '{"name": "f", "arguments": {}}'
_ARGUMENTS: Final = '{"name": "f", "arguments": {'
HEADERS: Final[dict[str, tuple[str, ...]]] = {
    "think": ("<think>",),
    "thought": ("</think>",),
    "said": (
        "<|channel|>",
        "<|channel|>final",
        "<|channel|>final<|constrain|>",
        "<|channel|>final<|constrain|>json",
    ),
    "fence": (
        "```",
        "```json",
    ),
    "mistral": (
        "[TOOL_CALLS]",
        "[TOOL_CALLS]f",
        "[TOOL_CALLS]f[CALL_ID]",
    ),
    "deepseek": (
        "<｜tool▁call▁begin｜>f",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f",
        "<｜tool▁call▁begin｜>f<｜tool▁sep｜>",
        "<｜tool▁call▁begin｜>f```",
        "<｜tool▁calls｜>function<｜tool▁sep｜>f",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁begin｜>f<｜tool▁sep｜>",
    ),
    "kimi": (
        "<|tool_call_begin|>",
        "<|tool_call_begin|>f",
        "<|tool_call_begin|>functions.f:0",
        "functions.f:0",
        "functions.f:0<|tool_call_argument_begin|>",
    ),
    "harmony": (
        "to=functions.f",
        "<|channel|>commentary to=functions.f",
        "to=functions.f<|channel|>commentary",
        "to=functions.f<|constrain|>json",
        "to=functions.f code",
        "to=functions.f<|message|>",
    ),
    "recipient_only": (
        "to=f",
        "<|channel|>commentary to=f",
        "to=f<|channel|>commentary",
        "to=f<|constrain|>json",
        "to=f json<|message|>",
    ),
    "gemma": (
        "<|tool_call>",
        "<|tool_call>call:",
        "<|tool_call>call:f",
        "<start_function_call>call",
    ),
    "react": (
        "Action:",
        "Action: f",
        "Action: f (g)",
        "Action: f\n",
        "Action: f\nAction Input:",
        "Action: f\nAction Input: **",
    ),
    "tag": ("<f>",),
    "code": ("```tool_code\n", "```tool_code\n[", "```tool_code\nf"),
    "python": ("f", "f("),
    "function": (
        "<function=f",
        "<function=f>",
        "<function=f><parameter=a>",
        "<function=f><parameter=a>b</parameter>",
    ),
    "invoke": (
        "<invoke",
        "<invoke name=",
        "<invoke name=f",
        "<invoke name='f'",
        "<invoke name='f'>",
        "<invoke name='f'><parameter",
        "<invoke name='f'><parameter name='a'",
    ),
    "param": (
        "<function",
        "<function name='f'",
        "<function name='f'>",
        "<function name='f'><param",
    ),
    "wrapper": (
        "<tool_call>",
        "<tool_call>f",
        "<tool_call>f<arg_key>",
        "<tool_call>f<arg_key>a",
        "<tool_call>f<arg_key>a</arg_key>",
        "<tool_call><name>f",
        "<tool_call><name>f</name>",
        "<tool_call>[",
        "<|action_start|>",
        "[TOOL_REQUEST]",
        "Action: ```json",
    ),
    "brace": (
        "{",
        "{a",
        "{'a'",
    ),
    "bracket": (
        "[",
        "[f(",
        "[{",
    ),
}
"""What each reader of `openings` begins with, and the places in it where white space may stand, by reader."""

SHAPES: Final[dict[str, Shape]] = {
    # Many members, keys, values, strings in one call
    "keys that are never twice": Shape('"k{n}": "", ', _ARGUMENTS, '"z": 1}}'),
    "a key that is twice, at the end": Shape('"k{n}": "", ', _ARGUMENTS, '"z": 1, "z": 2}}'),
    "bare keys": Shape("k{n}: 1, ", _ARGUMENTS, "z: 1}}"),
    "nested objects": Shape('{"a": ', _ARGUMENTS + '"a": '),
    "nested lists that close": Shape("[[]], ", _ARGUMENTS + '"a": [', "1]}}"),
    "escapes": Shape("\\\\n", _ARGUMENTS + '"a": "', '"}}'),
    "needless escapes": Shape("\\'", _ARGUMENTS + '"a": "', '"}}'),
    "surrogates": Shape("\\ud83d", _ARGUMENTS + '"a": "', '"}}'),
    "typographic quotes": Shape("“a”: “b”, ", _ARGUMENTS, "“z”: 1}}"),
    "comments": Shape("/* c */ ", _ARGUMENTS),
    "line comments": Shape("// c\n", _ARGUMENTS, "}}"),
    "long numbers": Shape("1", _ARGUMENTS + '"a": ', "}}"),
    "digits and dots": Shape("1.", _ARGUMENTS + '"a": '),
    "white space in a call": Shape(" \n\t", _ARGUMENTS + '"a":', "1}}"),
    "byte order marks": Shape("\ufeff", _ARGUMENTS + '"a":', "1}}"),
    "missing commas": Shape('{"a": 1}', _ARGUMENTS + '"a": [', "]}}"),
    "arguments in a string": Shape('\\"k{n}\\": 1, ', '{"name": "f", "arguments": "{', '\\"z\\": 1}"}'),
    "arguments in strings in strings": Shape(
        '{"name": "f", "arguments": "{}"}, ', '{"tool_calls": [', _CALL + "]}"
    ),
    # Wrappers whose items are broken
    "broken items": Shape('{"at": 15:30}, ', "<tool_calls>[", "]</tool_calls>"),
    "items that are cut": Shape('<tool_call>{"a": "b", "c": {'),
    "items with a quote too many": Shape('<tool_call>{"a": ""b"}</tool_call>'),
    "items with closing tokens in strings": Shape('<tool_call>{"a", "</tool_call>'),
    "items that are no calls": Shape("{},", "<tool_calls>[", "]</tool_calls>"),
    "empty lists": Shape("[],", "<tool_calls>", "</tool_calls>"),
    "lists in lists": Shape("[", "<tool_calls>"),
    "wrappers in wrappers": Shape("<tool_call><tool_calls>[", "", "]"),
    "calls in one list": Shape(_CALL + ",", "<tool_calls>[", "]</tool_calls>"),
    "calls without a list": Shape(_CALL + "\n", "<tool_calls>", "</tool_calls>"),
    "calls that miss their commas": Shape(_CALL, "[TOOL_CALLS][", "]"),
    "names with keys": Shape("f<arg_key>a</arg_key><arg_value>b</arg_value></tool_call><tool_call>", "<tool_call>"),
    # Elements
    "closing tags that do not close": Shape("</parameter>x", "<function=f><parameter=a>"),
    "opening tags in a value": Shape("\n<parameter=b>", "<function=f><parameter=a>", "</parameter></function>"),
    "arguments of one call": Shape("<parameter=k{n}>v</parameter>", "<function=f>", "</function>"),
    "margins": Shape("    x\n", "<function=f>\n    <parameter=a>\n", "    </parameter>\n</function>"),
    "damaged tags": Shape("</parameter ", "<function=f><parameter=a>", "</parameter></function>"),
    "invocations": Shape('<invoke name="f"><parameter name="a">b</parameter></invoke>', "<minimax:tool_call>"),
    "DSML with spaces": Shape('<｜DSML｜ invoke name="f">\n', "<｜DSML｜ calls>"),
    "CDATA": Shape('<invoke name="f"><parameter name="a"><![CDATA[x]]', ""),
    "CDATA and white space": Shape(" ", '<invoke name="f"><parameter name="a"><![CDATA[x]]>'),
    "CDATA, white space and a letter": Shape(" ", '<invoke name="f"><parameter name="a"><![CDATA[x]]>', "y"),
    "white space in a value": Shape(" \n", "<function=f><parameter=a>x", "y</parameter></function>"),
    "white space in a value that is not closed": Shape(" \n", "<function=f><parameter=a>x", "</function></tool_call>"),
    "escaped newlines in a value": Shape(
        "\\n", "<tool_call>f<arg_key>a</arg_key><arg_value>x", "y</arg_value></tool_call>"
    ),
    "calls and words": Shape('<tool_call>{"name": "f", "arguments": {}} and words '),
    "plain elements, nested": Shape("<a>", '<invoke name="f">'),
    "calls without arguments, an argument closed at the end": Shape(
        "<function=f></function>\n", "", "<parameter=a>x</parameter>"
    ),
    "calls behind each other, half between newlines": Shape("<function=f><parameter=a>\nx</parameter></function>"),
    # Python
    "a Python call with one object": Shape("'k{n}': 1, ", "[f({", "})]"),
    "Python calls with one object": Shape("[f({})] "),
    "arguments of a Python call": Shape("a{n}=1, ", "[f(", ")]"),
    "Python calls": Shape("f(a=1), ", "<|python_start|>[", "]"),
    "Python calls in brackets": Shape("[f(a=1)] "),
    "Python sets": Shape("{'a', ", "<|python_start|>[f(a="),
    "Python dicts": Shape("{'a': ", "<|python_start|>[f(a="),
    "Python tuples": Shape("((", "<|python_start|>[f(a="),
    "triple quotes": Shape("'''", "<|python_start|>[f(a="),
    "names with dots": Shape("a.", "["),
    # Tokens of single formats
    "Harmony headers": Shape("<|channel|>commentary to=functions.f <|constrain|>json<|message|>"),
    "Harmony calls": Shape("<|channel|>commentary to=functions.f<|message|>{}<|call|>"),
    "Gemma calls": Shape('<|tool_call>call:f{a:<|"|>b<|"|>}<tool_call|>'),
    "Gemma calls behind one token": Shape('call:f{a:<|"|>b<|"|>}', "<|tool_call>"),
    "Gemma calls without tokens": Shape('call:f{a:<|"|>b<|"|>} ', "", "end"),
    "Gemma in brackets": Shape("<|tool_call>call:f(a=1)"),
    "Gemma quotes": Shape('<|"|>', "<|tool_call>call:f{a:"),
    "Gemma values without quotes": Shape("a b ", "<|tool_call>call:f{a:"),
    "Kimi K2 calls whose first token is lost": Shape("functions.f:{n}<|tool_call_argument_begin|>{}<|tool_call_end|>"),
    "Kimi K2 names": Shape("functions.f:1"),
    "Kimi K2 names that are plain": Shape("<|tool_call_begin|>functions_f_1"),
    "Mistral calls without their token behind thinking": Shape("</think>f[ARGS]{}"),
    "Kimi K2 calls": Shape("<|tool_call_begin|>functions.f:{n}<|tool_call_argument_begin|>{}<|tool_call_end|>"),
    "DeepSeek headers": Shape("<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"),
    "ReAct": Shape("Action: f\nAction Input: {}\n"),
    "ReAct in one reply": Shape("Action: f\n\nAction Input: ** {}\n"),
    "ReAct names": Shape("Action: f (g) \n "),
    "ReAct lines": Shape("\n", "Action: f\n", "x"),
    "Kimi K2 names alone": Shape("<|tool_call_begin|>f<|tool_call_argument_begin|>{}"),
    "Kimi K2 names alone in a section": Shape(
        "<|tool_call_begin|>f<|tool_call_argument_begin|>{}", "", "<|tool_calls_section_begin|>"
    ),
    "DeepSeek sections": Shape("<｜tool▁calls▁begin｜>f<｜tool▁sep｜>{}"),
    "Action in a block": Shape("Action: ```json\n[", "", "```"),
    "Mistral calls behind one token": Shape("f[ARGS]{}", "[TOOL_CALLS]"),
    "Mistral calls that break off": Shape("f [CALL_ID] a ", "[TOOL_CALLS]f[ARGS]{}"),
    "Mistral identifiers": Shape("[TOOL_CALLS]f[CALL_ID]a[ARGS]"),
    # Thinking, code, prose
    "thinking that ends and ends": Shape("<think></think>"),
    "thoughts that never began": Shape("a</think>"),
    "thinking in thinking": Shape("<think>" + _CALL),
    "blocks of code": Shape("```json\n" + _CALL + "\n```\n"),
    "blocks that never end": Shape("```json\n{", ""),
    "ticks of many lengths": Shape("`" * 3 + "a" + "`" * 4 + "b" + "`" * 5 + "c"),
    "examples": Shape("for example: " + _CALL + "\n"),
    "data": Shape('{"user": "u{n}", "age": 3}\n'),
    "data in one list": Shape('{"user": "u{n}"}, ', "[", "{}]"),
    "almost calls": Shape('{"name": "f", "arguments": "x"}\n'),
    "almost openings": Shape("<tool_cal<function_cal<|tool_cal"),
    "bytes that are many": Shape("漢字😀", "", _CALL),
    "text between calls of many bytes": Shape("漢" + _CALL),
    "quotes": Shape("\"'“”`"),
    "the middle of words": Shape("tofAtofA"),
    "tildes": Shape("~~~\n"),
    "calls between ticks": Shape("`<function=f></function>`"),
    "recipients": Shape("<|channel|>commentary to=f "),
    "messages to the user": Shape("to=user<|message|>"),
    "a python list that breaks": Shape("f(a=1), ", "<|tool_call_start|>[", "g(b'"),
    "keys between escaped newlines": Shape(r"\n", "<tool_call>f", ""),
}  # fmt: skip
"""Shapes by a name for people."""

WHITE: Final[dict[str, Shape]] = {
    f"{header!r} and white space{often}": shape
    for headers in HEADERS.values()
    for header in headers
    for often, shape in (("", Shape(" ", header, "y")), (", often", Shape(header.ljust(1024))))
}
"""A run of white space behind every place of an opening that may have some, once and again and again."""
