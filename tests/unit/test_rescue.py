"""Rescue parsing: what becomes a call, what does not, and what a refusal says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from statek_sim.cli.app import app, load_commands
from statek_sim.errors import BadInput
from statek_sim.rescue import Limits, Reason, Rescued, RescueStream, rescue
from statek_sim.values import JSON
from tests.tables import table_test

load_commands()

WEATHER: dict[str, JSON] = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "hourly": {"type": "boolean"},
        },
        "required": ["city"],
    },
}


def _calls(result: Rescued) -> list[tuple[str, Mapping[str, object]]]:
    return [(call.name, dict(call.arguments)) for call in result.calls]


def _reasons(result: Rescued) -> list[Reason]:
    return [refusal.reason for refusal in result.refused]


# -- repairs -----------------------------------------------------------------------------------------------------


@table_test(
    ("arguments", "stage"),
    [
        ('{"a": 1,}', "trailing_commas"),
        ("{'a': 1}", "single_quotes"),
        ("{a: 1}", "bare_keys"),
        ('{“a”: 1}', "smart_quotes"),
        ('{"a": 1 /* one */}', "comments"),
        ('{"a": 1,\n// one\n}', "comments"),
        ('{"a": 1 "b": 2}', "missing_commas"),
        ('{"a": True}', "spelled_literals"),
        ('{"a": "one\ntwo"}', "raw_control_characters"),
        ('{"a": "C:\\dir"}', "single_backslashes"),
        ('{"a": "it\\\'s"}', "needless_escapes"),
    ],
)  # fmt: skip
def test_what_has_one_meaning_is_repaired_and_named(arguments: str, stage: str) -> None:
    result = rescue(f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>')
    assert stage in result.stages
    assert len(result.calls) == 1


def test_strings_are_not_touched_by_repairs() -> None:
    text = '{"name": "f", "arguments": {"code": "f(a, ] // no, } “x”", }}'
    assert _calls(rescue(text)) == [("f", {"code": "f(a, ] // no, } “x”"})]


def test_a_bracket_that_misses_behind_the_arguments_is_closed() -> None:
    result = rescue('{"name": "f", "arguments": {"a": {"b": 1}}')
    assert _calls(result) == [("f", {"a": {"b": 1}})]
    assert "closed_brackets" in result.stages


@table_test(
    "text",
    [
        '{"name": "f", "arguments": {"a": "half a sen',
        '{"name": "f", "arguments": {"a": "x"',
        '{"name": "f", "arguments": {"a": 12',
        '{"name": "f", "arguments": {"a": [1, 2]',
        "<tool_call><function=f><parameter=a>\nx",
        "<tool_call><function=f><parameter=a>\nx\n</parameter>\n",
        "[f(a='x'",
        '<|tool_call>call:f{a:<|"|>Lon',
    ],
)
def test_a_call_that_is_cut_is_refused_and_not_completed(text: str) -> None:
    result = rescue(text, ["f"])
    assert result.calls == ()
    assert _reasons(result) == [Reason.CUT]


@table_test(
    ("arguments", "why"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' appears twice"),
        ("{'a': 1, 'a': 2}", "the key 'a' appears twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ('{"a": 99999999999999999999}', "the integer 99999999999999999999 has more than 64 bits"),
        ('{"a": "\\ud800"}', "a string contains half of a surrogate pair"),
        ('{"a": undefined}', "'undefined}}<' is not a value"),
        ("{'a': '\\x00'}", "'\\\\x00' is ambiguous"),
        ('{"a": "say "hi""}', "'hi\"\"}}</tool' after a value"),
    ],
)
def test_what_would_be_a_guess_is_refused_with_its_reason(arguments: str, why: str) -> None:
    result = rescue(f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>')
    assert result.calls == ()
    assert [refusal.why for refusal in result.refused] == [why]


def test_depth_values_calls_and_size_are_bounded() -> None:
    deep = '{"name": "f", "arguments": {"a": ' + "[" * 70 + "]" * 70 + "}}"
    assert _reasons(rescue(deep)) == [Reason.LIMIT]
    many = '{"name": "f", "arguments": {"a": [' + "1," * 30_000 + "1]}}"
    assert _reasons(rescue(many)) == [Reason.LIMIT]
    calls = rescue('{"name": "f", "arguments": {}}\n' * 10, limits=Limits(max_calls=3))
    assert (calls.calls, _reasons(calls)) == ((), [Reason.LIMIT])
    assert _reasons(rescue("x" * 11, limits=Limits(max_bytes=10))) == [Reason.LIMIT]


# -- tools -------------------------------------------------------------------------------------------------------


def test_a_tool_that_was_not_offered_is_not_called() -> None:
    result = rescue('<tool_call>{"name": "get_wether", "arguments": {"city": "Oslo"}}</tool_call>', [WEATHER])
    assert result.calls == ()
    assert result.refused[0].why == (
        "there is no tool 'get_wether'; offered: get_weather. Did you mean 'get_weather'?"
    )


def test_arguments_that_do_not_fit_are_refused_with_path_and_expectation() -> None:
    result = rescue('{"name": "get_weather", "arguments": {"city": 5.5}}', [WEATHER])
    assert _reasons(result) == [Reason.SCHEMA]
    assert result.refused[0].why == "'get_weather': ['city']: 5.5 is not of type 'string'"


@pytest.mark.parametrize(
    "tool",
    [
        WEATHER,
        {"type": "function", "function": WEATHER},
        {"name": "get_weather", "input_schema": WEATHER["parameters"]},
    ],
)
def test_texts_become_what_the_schema_says_in_every_shape_of_spec(tool: Mapping[str, JSON]) -> None:
    text = (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\n10\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "<parameter=hourly>\ntrue\n</parameter>\n</function>\n</tool_call>"
    )
    assert _calls(rescue(text, [tool])) == [("get_weather", {"city": "10", "days": 3, "hourly": True})]


def test_a_text_in_json_is_a_number_only_where_the_schema_takes_no_text_and_conversion_is_asked_for() -> None:
    text = '{"name": "get_weather", "arguments": {"city": "10", "days": "3"}}'
    refused = rescue(text, [WEATHER])
    assert _calls(refused) == []
    assert [refusal.why for refusal in refused.refused] == [
        "'get_weather': ['days']: '3' is not of type 'integer'"
    ]
    stream = RescueStream([WEATHER], coerce=True)
    stream.feed(text)
    for result in (rescue(text, [WEATHER], coerce=True), stream.finish()):
        assert _calls(result) == [("get_weather", {"city": "10", "days": 3})]
        assert "typed_by_schema" in result.stages


def test_a_schema_is_not_fetched_and_a_wrong_tool_is_bad_input() -> None:
    remote: dict[str, JSON] = {"name": "f", "parameters": {"$ref": "http://localhost:1/schema.json"}}
    assert (
        rescue('{"name": "f", "arguments": {}}', [remote])
        .refused[0]
        .why.startswith("'f': the arguments: a reference in the schema cannot be resolved: ")
    )
    with pytest.raises(BadInput, match=r"^tool 1 has no name: "):
        rescue("", [{"parameters": {}}])
    sloppy: dict[str, JSON] = {"type": "dict", "properties": {"ratio": {"type": "float"}}}
    result = rescue(
        "<function=f><parameter=ratio>0.5</parameter></function>", [{"name": "f", "parameters": sloppy}]
    )
    assert (_calls(result), result.stages) == ([("f", {"ratio": 0.5})], ("function",))
    sloppy["required"] = "ratio"
    result = rescue(
        "<function=f><parameter=ratio>0.5</parameter></function>", [{"name": "f", "parameters": sloppy}]
    )
    assert (_calls(result), result.stages) == ([("f", {"ratio": 0.5})], ("function", "unchecked_schema"))


# -- text that is no call ----------------------------------------------------------------------------------------


@table_test(
    "text",
    [
        "The model writes `<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>` to call a tool.",
        "The <tool_call> tag opens a call, </tool_call> closes it.",
        'Here is the data: {"name": "Ada", "age": 36, "arguments": {}}',
        'The config is {"server": {"name": "f", "arguments": {}}}.',
        '[{"name": "Ada"}, {"name": "f", "arguments": {}}]',
        "```python\ndef f(a=1):\n    return [f(a=2)]\n```",
        '```json\n{"users": [{"name": "f", "arguments": {}}]}\n```',
        'For example: {"name": "f", "arguments": {}}',
        "See [the docs](f) and [f](x), or f(a=1).",
        '<think>I could call <tool_call>{"name": "f", "arguments": {}}</tool_call></think>No, I will not.',
        'maybe {"name": "f", "arguments": {}}\n</think>\nNo.',
        "2 < 3 and {x} and [y] and a ``` fence",
        "",
    ],
)  # fmt: skip
def test_text_that_talks_about_calls_makes_none(text: str) -> None:
    assert rescue(text).calls == ()
    assert rescue(text, ["f"]).calls == ()


def test_a_call_inside_a_string_of_a_call_is_a_string() -> None:
    inner = '<tool_call>{"name": "rm", "arguments": {}}</tool_call>'
    text = "<tool_call>" + json.dumps({"name": "f", "arguments": {"text": inner}}) + "</tool_call>"
    assert _calls(rescue(text)) == [("f", {"text": inner})]
    broken = text.replace('{"name": "f"', '{"name" "f"')
    assert rescue(broken).calls == ()
    assert rescue(text[:-30]).calls == ()


@table_test(
    "text",
    [
        'functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_calls_section_end|>',
        '<|tool_call_begin|>functions_f_1<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>',
        'f[ARGS]{"a": 1}',
        '<think>which?</think>\nf [CALL_ID]12 [ARGS] {"a": 1}',
    ],
)
def test_a_call_of_which_a_server_left_a_token_out_is_read(text: str) -> None:
    assert _calls(rescue(text)) == [("f", {"a": 1})]


def test_mistrals_call_without_its_token_is_one_only_where_a_reply_begins() -> None:
    assert _calls(rescue('So f[ARGS]{"a": 1} it is')) == []
    assert _calls(rescue('f[ARGS]{"a": "cut')) == []


def test_the_text_around_a_call_is_kept_without_thinking() -> None:
    text = '<think>hm</think>Let me look.\n<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    result = rescue(text, dialect="hermes")
    assert (len(result.calls), result.text, result.thinking) == (1, "Let me look.", "<think>hm</think>")


def test_a_span_counts_bytes() -> None:
    text = '<think>Für dich ✓</think>{"name": "f", "arguments": {"ort": "Köln"}} '
    (call,) = rescue(text).calls
    assert (
        text.encode()[call.span.start : call.span.end].decode()
        == '{"name": "f", "arguments": {"ort": "Köln"}}'
    )


# -- work --------------------------------------------------------------------------------------------------------

HOSTILE = (
    "{", "[", '{"a":', '{"name":', "[{", "<tool_call>", "<tool_call>{", '<tool_call>{"name":"', "[TOOL_CALLS]a{",
    "<function=a><parameter=b>", "`", "`a\n", "```\n", "```json\n{", "<", "<|", "<think>", "</think>", "[a(b=[", "\\",
    '"', '{"\\"', "{“", '<|tool_call>call:a{b:<|"|>', '{"name":/*', '[{"name":"a","arguments":{}},', "{ ", "x", "to=",
    '{"name":"a","arguments":{}}', '{"a":1}', "</tool_call>", "<tool_call>a<arg_key>b</arg_key><arg_value>", "(", "A",
    "Action: a\nAction Input: {", "'", "“", "\n", " ",
)  # fmt: skip


@table_test("unit", HOSTILE)
def test_twice_a_hostile_text_takes_at_most_twice_the_steps(unit: str) -> None:
    once = rescue(unit * (65_536 // len(unit)))
    twice = rescue(unit * (131_072 // len(unit)))
    assert 0 < once.steps <= 12 * 65_536
    assert twice.steps <= 2 * once.steps + 200


# -- streams, the last stage -------------------------------------------------------------------------------------


def test_a_stream_keeps_no_more_than_its_limit() -> None:
    stream = RescueStream(limits=Limits(max_bytes=100))
    for _ in range(1_000):
        stream.feed("x" * 10)
    assert _reasons(stream.finish()) == [Reason.LIMIT]


def test_the_last_stage_is_asked_once_and_read_by_the_same_rules() -> None:
    asked: list[str] = []

    def reformat(text: str) -> str:
        asked.append(text)
        return '{"name": "f", "arguments": {"a": "x"}}'

    broken = '<tool_call>{"name": "f", "arguments": {"a": "x</tool_call>'
    result = rescue(broken, ["f"], reformat=reformat)
    assert (result.stages, asked) == (("reformat", "json"), [broken])
    assert rescue("Just text.", ["f"], reformat=reformat).calls == ()
    assert len(asked) == 1
    assert _reasons(rescue(broken, ["g"], reformat=reformat)) == [Reason.CUT, Reason.REFORMAT]


def test_an_error_of_the_last_stage_is_raised() -> None:
    def gone(text: str) -> str:
        raise ConnectionError("no client")

    with pytest.raises(ConnectionError, match=r"^no client$"):
        rescue('{"name": "f", "arguments": {"a": ', reformat=gone)


# -- the command -------------------------------------------------------------------------------------------------


def test_the_command_reads_a_file_and_tools(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps({"tools": [WEATHER]}))
    (tmp_path / "reply.txt").write_text(
        '<think>Oslo.</think>[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo",}}]'
    )
    ran = CliRunner().invoke(
        app, ["rescue", str(tmp_path / "reply.txt"), "--tools", str(tmp_path / "tools.json")]
    )
    assert json.loads(ran.output) == {
        "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}],
        "text": "",
        "stages": ["tool_calls", "trailing_commas"],
        "refused": [],
    }


def test_the_command_answers_every_line_with_its_id() -> None:
    lines = [
        {"id": 1, "text": '{"name": "f", "arguments": {}}', "tools": None},
        {"id": "b", "text": '{"name": "f", "arguments": {}}', "tools": ["g"]},
        {"id": None, "text": "\ud800 hello"},
    ]
    ran = CliRunner().invoke(app, ["rescue", "--jsonl"], input="\n".join(map(json.dumps, lines)))
    answers = [json.loads(line) for line in ran.output.splitlines()]
    assert [answer["id"] for answer in answers] == [1, "b", None]
    assert [len(answer["calls"]) for answer in answers] == [1, 0, 0]
    assert answers[1]["refused"][0]["reason"] == "not_offered"


@table_test(
    ("line", "message"),
    [
        (b"{", "-:2: invalid JSON: "),
        (b"\xff", "-:2: byte 0 is not UTF-8"),
        (b"[1]", '-:2: expected an object with "id", "text" and "tools", where "text" is a string'),
        (b'{"id": 1}', '-:2: expected an object with "id", "text" and "tools", where "text" is a string'),
        (b'{"id": 1, "text": "", "tools": "f"}', "-:2: expected a list of tool names or specs, found str"),
        (b'{"id": 1, "text": "", "tools": [{}]}', "-:2: tool 1 has no name: "),
    ],
)
def test_a_line_that_is_wrong_is_told_with_its_place_and_the_others_are_answered(
    line: bytes, message: str
) -> None:
    good = b'{"id": 7, "text": ""}'
    ran = CliRunner().invoke(app, ["rescue", "--jsonl"], input=b"\r\n".join([good, line, b"", good]))
    assert ran.exit_code == 2
    assert ran.stderr.startswith(message)
    assert ran.stderr.count("\n") == 1
    assert [json.loads(answer)["id"] for answer in ran.stdout.splitlines()] == [7, 7]


def test_a_line_whose_tools_are_null_accepts_any_name_and_one_without_tools_those_of_the_command(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools.json").write_bytes(b'\xef\xbb\xbf["g"]')
    text = '{"name": "f", "arguments": {}}'
    lines = [{"id": 1, "text": text, "tools": None}, {"id": 2, "text": text}]
    given = "\ufeff" + "\n".join(map(json.dumps, lines))
    ran = CliRunner().invoke(app, ["rescue", "--jsonl", "--tools", str(tmp_path / "tools.json")], input=given)
    assert [len(json.loads(line)["calls"]) for line in ran.stdout.splitlines()] == [1, 0]


def test_a_line_is_answered_before_the_next_is_written() -> None:
    command = [sys.executable, "-c", "from statek_sim.cli import main; main()", "rescue", "--jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ran:
        assert ran.stdin is not None
        assert ran.stdout is not None
        for number in range(2):
            ran.stdin.write(b'{"id": %d, "text": ""}\n' % number)
            ran.stdin.flush()
            assert json.loads(ran.stdout.readline())["id"] == number
        ran.stdin.close()
    assert ran.returncode == 0


@pytest.mark.parametrize("written", ["[[1, 2, 3]", "{'a': {'b': 1}", '"cut'])
def test_a_bracket_or_quote_that_misses_in_a_text_is_not_added(written: str) -> None:
    parameters: JSON = {"type": "object", "properties": {"a": {"type": "array"}, "b": {}}}
    tools: list[str | Mapping[str, JSON]] = [{"name": "f", "parameters": parameters}]
    for key in ("a", "b"):
        text = f"<tool_call>f<arg_key>{key}</arg_key><arg_value>{written}</arg_value></tool_call>"
        assert all(dict(call.arguments) == {key: written} for call in rescue(text, tools).calls)


def test_a_text_with_a_newline_on_one_side_only_is_refused_where_the_format_writes_both() -> None:
    for value, said in (("\nx\n", "x"), ("x", "x"), ("\nx", None), ("x\n", None), ("\n", None)):
        result = rescue(f"<function=f><parameter=a>{value}</parameter></function>", ["f"])
        assert [call.arguments["a"] for call in result.calls] == ([] if said is None else [said])
    counts: JSON = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool: dict[str, JSON] = {"name": "f", "parameters": counts}
    assert rescue("<function=f><parameter=a>1\n</parameter></function>", [tool]).calls[0].arguments == {
        "a": 1
    }


@pytest.mark.parametrize("lines", [False, True])
def test_the_command_converts_arguments_when_it_is_asked_to(tmp_path: Path, lines: bool) -> None:
    days: dict[str, JSON] = {"type": "object", "properties": {"days": {"type": "integer"}}}
    tools: list[JSON] = [{"name": "book", "parameters": days}]
    text = '<tool_call>{"name": "book", "arguments": {"days": "3"}}</tool_call>'
    (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    command = ["rescue", "--tools", str(tmp_path / "tools.json"), *(["--jsonl"] if lines else [])]
    given = json.dumps({"id": 1, "text": text}) if lines else text
    plain, coerced = (
        json.loads(CliRunner().invoke(app, [*command, *more], input=given).stdout)
        for more in ([], ["--coerce"])
    )
    assert plain["calls"] == []
    assert [refusal["reason"] for refusal in plain["refused"]] == ["schema"]
    assert coerced["calls"] == [{"name": "book", "arguments": {"days": 3}}]
    assert coerced["refused"] == []


def test_what_a_model_thinks_in_its_channel_of_analysis_is_no_call() -> None:
    thought = '<|channel|>analysis<|message|>Shall I {"name": "look", "arguments": {"at": "Rome"}}'
    call = '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"at": "Oslo"}<|call|>'
    assert _calls(rescue(f"{thought}<|end|><|start|>assistant{call}")) == [("look", {"at": "Oslo"})]
    assert _calls(rescue(thought + call)) == []


@table_test(
    "tag",
    ["tool_response", "tool_result", "tool_results", "tool_output", "function_results", "function_response"],
)
def test_what_a_tool_is_said_to_have_answered_is_no_call(tag: str) -> None:
    call = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    for text in (
        f"<{tag}>\n{call}\n</{tag}>\nIt is sunny.",
        f"<{tag}>{call}",
        f"<{tag}><tool_call>{call}</tool_call>",
    ):
        assert rescue(text).calls == ()


def _tool_code(body: str, tools: Sequence[str] | None = ("book",)) -> Rescued:
    return rescue(f"```tool_code\n{body}\n```", tools)


@pytest.mark.parametrize(
    ("body", "cities"),
    [
        ("print(default_api.book(city='Oslo'))", ["Oslo"]),
        ("print(book(city='Oslo'))", ["Oslo"]),
        (
            "print( book(city='Oslo') )\nbook(city='Rome')\nprint(default_api.book(city=')('))",
            ["Oslo", "Rome", ")("],
        ),
    ],
)
def test_a_call_that_gemini_prints_is_one(body: str, cities: list[str]) -> None:
    found = _tool_code(body)
    assert [call.arguments["city"] for call in found.calls] == cities
    assert {call.name for call in found.calls} == {"book"}
    assert found.calls[0].stages == ("tool_code", "python", "print")
    assert [call.name for call in _tool_code(body, None).calls] == ["book"] * len(cities)


@table_test(
    ("body", "why"),
    [
        ("print(book(city='Oslo'), 1)", "', 1)"),
        ("print('book')", "an argument has no name"),
        ("print(str(1))", "an argument has no name"),
        ("print(shout(city='Oslo'))", "there is no tool 'shout'; offered: book."),
    ],
)
def test_what_is_printed_and_is_no_call_of_a_tool_is_refused(body: str, why: str) -> None:
    found = _tool_code(body)
    assert not found.calls
    assert found.refused[0].why.startswith(why)
    assert not rescue(f"Then print(book(city='Oslo')) it.\n```python\n{body}\n```", ["book"]).calls


def test_a_print_that_is_cut_off_is_refused_and_a_tool_that_is_called_print_is_one() -> None:
    cut = rescue("```tool_code\nprint(book(city='Oslo')", ["book"])
    assert (cut.calls, [str(refused.reason) for refused in cut.refused]) == ((), ["cut"])
    assert [call.name for call in _tool_code("print(city='Oslo')", ["print"]).calls] == ["print"]
