"""Permissions of calls: the checker on policies of all kinds, rules of paths, hosts and commands, approval, files."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.agent.async_driver import AsyncDriver, LoopClock, model_of
from statek_sim.agent.effects import Delayed, Parts, PersonSaid, Question, ToolCall
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.permissions.commands import simple_commands
from statek_sim.agent.permissions.paths import (
    Entry,
    ScriptedFiles,
    Unclear,
    covers,
    covers_host,
    host_of,
    resolved,
)
from statek_sim.agent.permissions.permissions import PermissionGate, Permissions
from statek_sim.agent.permissions.policy import Decision, Policy, Rule
from statek_sim.agent.permissions.terminal import TerminalPerson
from statek_sim.agent.permissions.workspace import Disk, Outside, Workspace, file_tools, open_beneath
from statek_sim.agent.tools.registry import Registry
from statek_sim.agent.tools.tool import Tool, tool_from
from statek_sim.errors import BadInput, BadScenario, BadTool
from statek_sim.providers.script import text, tool_call
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.scenario.load import load_or_fail
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.containers.attacks.policies import Hardened, calls, played
from tests.says import line_with
from tests.tables import table_test

EMPTY = ScriptedFiles({})


def virtually(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return run_in(VirtualLoop(), coroutine)


# -- the corpus -------------------------------------------------------------------------------------------------


def test_no_call_of_the_corpus_gets_past_our_policy() -> None:
    assert {call.name: played(Hardened, call) for call in calls()} == dict.fromkeys(
        [call.name for call in calls()]
    )


# -- paths ------------------------------------------------------------------------------------------------------

FILES = ScriptedFiles(
    {
        "/w/link": Entry(kind="link", target="/etc"),
        "/w/up": Entry(kind="link", target="../other/deep"),
        "/w/loop": Entry(kind="link", target="loop"),
    }
)


@table_test(
    ("path", "leads"),
    [
        ("a/./b//c/", "/w/a/b/c"),
        ("../w2/a", "/w2/a"),
        ("link/passwd", "/etc/passwd"),
        ("link/../x", "/x"),
        ("up/../y", "/other/y"),
        ("../../../..", "/"),
        ("/", "/"),
    ],
)
def test_a_path_leads_where_the_kernel_would_go(path: str, leads: str) -> None:
    assert resolved(path, "/w", FILES) == leads


@table_test("path", ["", "a\0b", "a\u200bb", "a\nb", "loop/x", None, 7, ["a"], b"a"])
def test_what_leads_nowhere_is_unclear(path: object) -> None:
    with pytest.raises(Unclear):
        resolved(path, "/w", FILES)


NAMES = st.lists(st.sampled_from(["a", "b", "link", "up", "..", ".", "x"]), min_size=1, max_size=6)


@given(
    NAMES,
    st.dictionaries(
        st.sampled_from(["a", "b", "link", "x"]), st.sampled_from(["b", "..", "a/..", "/a", "x/y"])
    ),
)
def test_paths_are_resolved_as_the_operating_system_does(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], links: dict[str, str]
) -> None:
    root = tmp_path_factory.mktemp("disk").resolve()
    for name, target in links.items():
        (root / name).symlink_to(f"{root}{target}" if target.startswith("/") else target)
    path = "/".join(parts)
    try:
        ours = resolved(path, str(root), Disk())
    except Unclear:
        with pytest.raises((OSError, RuntimeError)):
            (root / path).resolve(strict=True)
        return
    assert ours == os.path.realpath(f"{root}/{path}")


@table_test(
    ("pattern", "path", "fits"),
    [
        ("src/**", "/w/src", True),
        ("src/**", "/w/src/a/b", True),
        ("src/**", "/w/src-evil/a", False),
        ("src/*.py", "/w/src/a.py", True),
        ("src/*.py", "/w/src/a/b.py", False),
        ("**/*.py", "/w/a/b/c.py", True),
        ("/etc/hosts", "/etc/hosts", True),
        ("**", "/w", True),
        ("**", "/w2", False),
        ("Secret", "/w/secret", False),
    ],
)
def test_a_pattern_covers_whole_names(pattern: str, path: str, fits: bool) -> None:
    assert covers(pattern, path, "/w") is fits


def test_what_is_refused_is_refused_in_capitals_and_full_width_too() -> None:
    for path in ("/w/SECRETS/a", "/w/\uff53ecrets/a", "/w/Secrets/A"):
        assert covers("secrets/**", path, "/w", loosely=True)


# -- hosts ------------------------------------------------------------------------------------------------------


@table_test(
    ("url", "host"),
    [
        ("https://Example.COM/a", "example.com"),
        ("example.com:8443", "example.com"),
        ("http://user:word@example.com.", "example.com"),
        ("http://[::1]:80/", "::1"),
        ("http://[::ffff:127.0.0.1]", "127.0.0.1"),
        ("http://example.com#@evil.com/", "example.com"),
        ("http://example.com?@evil.com/", "example.com"),
    ],
)
def test_a_url_names_the_host_that_a_client_would_ask(url: str, host: str) -> None:
    assert host_of(url) == host


@table_test(
    "url",
    [
        "",
        7,
        "http://",
        "http://a b",
        "http://a\\@b",
        "ftp://a",
        "http://0x7f.1",
        "http://127.1",
        "http://010.0.0.1",
        "http://2130706433",
        "http://b\u00fccher.de",
        "http://a..b",
        "http://-a",
        "http://a:port",
        "http://[::1",
        "a\n.b",
    ],
)
def test_a_url_that_programs_read_differently_is_unclear(url: object) -> None:
    with pytest.raises(Unclear):
        host_of(url)


@table_test(
    ("pattern", "host", "fits"),
    [
        ("example.com", "example.com", True),
        ("example.com", "a.example.com", False),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "evilexample.com", False),
        ("*", "example.com", True),
        ("*", "169.254.169.254", False),
        ("*", "localhost", False),
        ("*", "metadata.google.internal", False),
        ("*", "10.0.0.1", False),
        ("*", "8.8.8.8", True),
        ("*", "64:ff9b::8.8.8.8", True),
        ("*", "64:ff9b::169.254.169.254", False),
        ("*", "2002:808:808::1", True),
        ("*", "2002:7f00:1::1", False),
        ("*", "2002:a00:1::", False),
        ("*", "::127.0.0.1", False),
        ("*", "::ffff:10.0.0.1", False),
        ("*", "::ffff:0:10.0.0.1", False),
        ("*", "2001:0:808:808:0:0:80ff:fffe", False),
        ("*", "224.0.0.1", False),
        ("*", "64:ff9b::224.0.0.1", False),
        ("*", "ff0e::1", False),
        ("*", "2606:4700::1111", True),
        ("*", "router.home.arpa", False),
        ("*", "home.arpa", False),
        ("*", "example.arpa", True),
        ("64:ff9b::a00:1", "64:ff9b::a00:1", True),
        ("127.0.0.1", "127.0.0.1", True),
    ],
)
def test_a_rule_covers_hosts_and_not_what_only_looks_like_them(pattern: str, host: str, fits: bool) -> None:
    assert covers_host(pattern, host) is fits


# -- commands ---------------------------------------------------------------------------------------------------


def test_a_line_is_taken_apart_into_its_commands() -> None:
    assert simple_commands("git log | head -1 && echo 'a; b' & ls\npwd") == (
        "git log",
        "head -1",
        "echo a; b",
        "ls",
        "pwd",
    )


@table_test(
    "line",
    [
        "",
        "  ",
        7,
        "a $(b)",
        "a `b`",
        "a > b",
        "a < b",
        "A=1 b",
        "(a)",
        "a 'b",
        "if a; then b; fi",
        "a <<E",
        "a ${b}",
        "a >| b",
        "a 2>&1",
        "cat <(b)",
        "{ a; }",
        "$'a'",
        "git log ;(rm -rf x);true",
        "git log ;>x rm -rf y",
        "git log #'\nrm -rf x\n#'",
        "#",
        "git log;#'\nrm x\n'",
        "git log 'a' \"b\\\"\" #'\nrm x #'",
        "r\\\nm x",
        "X+=1 rm -rf x",
        "X[0]=1 rm -rf x",
        "X[1 + 1]=1 rm -rf x",
    ],
)
def test_a_line_that_hides_something_is_unclear(line: object) -> None:
    with pytest.raises(Unclear):
        simple_commands(line)


def test_a_number_sign_that_begins_no_comment_is_clear() -> None:
    assert simple_commands("echo a#b '#c' \"d #e\" \\#f") == ("echo a#b #c d #e #f",)


# -- a policy ---------------------------------------------------------------------------------------------------


def shell(command: str) -> str:
    return command


def permissions(
    *, tools: list[Tool] | None = None, files: ScriptedFiles = EMPTY, **rules: list[Rule]
) -> Permissions:
    known = [tool_from(shell, access={"command": "command"})] if tools is None else tools
    return Permissions(Policy(root="/w", **rules), {tool.name: tool for tool in known}.get, files)  # type: ignore[arg-type]  # lists of rules by their names


def test_a_shell_outside_of_a_sandbox_is_refused_whatever_is_allowed() -> None:
    everything = permissions(allow=[Rule("command", "*"), Rule("tool", "*")])
    decision = everything.decide(ToolCall("1", "shell", {"command": "ls"}))
    assert decision.effect == "deny"
    assert decision.reason == "argument 'command' of shell: commands run only in a sandbox"


@table_test(
    "line",
    ["git log ;(rm -rf x);true", "git log ;>x rm -rf y", "git log #'\nrm -rf x\n#'", "X+=1 rm -rf x"],
)
def test_a_denied_command_is_seen_behind_punctuation_and_comments(line: str) -> None:
    assert deciding(line, "git log *", "true").effect == "deny"
    assert deciding(line, "*").rule == Rule("command", "rm *")


@table_test(
    "line",
    [
        "(rm -rf x)",
        "$(rm -rf x)",
        "`rm x`",
        "X=1;rm -rf x",
        "X=1 r''m x",
        "X=1 r\\\nm x",
        "(r\\m x)",
        "{ ls;rm x;}",
    ],
)
def test_a_denied_command_is_seen_in_a_line_that_cannot_be_taken_apart(line: str) -> None:
    assert deciding(line, "*").rule == Rule("command", "rm *")
    assert deciding("(ls firm)", "*").effect == "allow"


HIDING = (
    "{rm,-rf,x}",
    "env X=1 rm x",
    "time rm x",
    "nice -n 5 rm x",
    "sudo -u ann rm x",
    "ls | xargs -I{} rm {}",
    "sh -c 'ls && env rm x'",
    "find . -exec rm {} \\;",
    "flock /tmp/lock rm x",
    "somebodys-own-wrapper --quick rm x",
    "/bin/rm x",
    "./rm x",
    "RM x",
    "sort --compress-program=rm x",
    "make SHELL=rm",
    "alias x=rm",
    "GIT_PAGER=rm git log",
    "echo rm x | nice",
    "exec -a ls rm x",
    "if true; then rm x; fi",
    "trap 'rm x' EXIT",
    "awk 'BEGIN{system(\"rm x\")}'",
    "git -c alias.x='!rm y' x",
    "npm install --git=rm git://x",
    "npm install x --script-shell=/bin/rm",
)
"""Ways to run what is denied, in which its name is still to be seen."""

UNREADABLE = (
    "r{m,} x",
    "/bin/r? x",
    "$X x",
    "nice $X",
    "$(printf r)m x",
    "`echo r`m x",
    "echo cm0= | base64 -d | sh",
    "bash script.sh",
    "sh",
    "eval $X",
    ". ./x",
    "python -c 'x'",
    "python3.12 -c 'x'",
    "perl -e x",
    "nice node -e x",
    "PATH=/tmp ls",
    "LD_PRELOAD=./x ls",
    "$'\\x72m' x",
)
"""Ways to run what nobody can read out of the line."""

PLAIN = (
    "echo rm",
    "grep rm README.md",
    "git rm --cached a",
    "git commit -m 'rm it'",
    "command -v rm",
    "cat a | grep rm",
    "pytest -q | grep rm",
    "nohup npm start",
    "nice -n 5 pytest",
    "timeout 30 go test ./...",
    "env X=1 pytest -x",
    "X=1 pytest",
    "find . -name '*.py'",
    "python -m pytest -q 2>&1 | tail -5",
    "python script.py",
    "echo $HOME",
    "sed -i 's/a/b/' x",
    "(ls firm)",
)
"""What has nothing to do with what is denied."""


@table_test("line", HIDING)
def test_a_denied_command_is_seen_behind_another_one(line: str) -> None:
    decision = deciding(line, "*")
    assert (decision.effect, decision.rule) == ("deny", Rule("command", "rm *"))
    assert "cannot be checked" not in decision.reason


@table_test("line", UNREADABLE)
def test_what_cannot_be_read_is_refused_where_something_is_denied(line: str) -> None:
    decision = deciding(line, "*")
    assert decision.effect == "deny"
    assert "cannot be checked against the deny rules: " in decision.reason


@table_test("line", UNREADABLE)
def test_what_cannot_be_read_is_asked_about_where_something_is(line: str) -> None:
    tool = replace(tool_from(shell, access={"command": "command"}), sandboxed=True)
    allow = [Rule("command", "*")]
    held = permissions(tools=[tool], allow=allow, ask=[Rule("command", "rm *")])
    assert held.decide(ToolCall("1", "shell", {"command": line})).effect == "ask"
    held = permissions(tools=[tool], allow=allow)
    assert held.decide(ToolCall("1", "shell", {"command": line})).effect == "allow"


@table_test("line", PLAIN)
def test_a_command_that_only_names_what_is_denied_is_allowed(line: str) -> None:
    assert deciding(line, "*").effect == "allow"


@table_test("line", ["env git log", "nice git log", "/usr/bin/git log", "{git,log}", "GIT log"])
def test_what_is_allowed_is_allowed_as_it_is_written_alone(line: str) -> None:
    assert deciding(line, "git log *").effect == "deny"


def deciding(line: str, *allowed: str) -> Decision:
    """Return what is said of a line in a sandbox where `rm` is denied."""
    tool = replace(tool_from(shell, access={"command": "command"}), sandboxed=True)
    allow = [Rule("command", pattern) for pattern in allowed]
    held = permissions(tools=[tool], allow=allow, deny=[Rule("command", "rm *")])
    return held.decide(ToolCall("1", "shell", {"command": line}))


def test_a_tool_that_nobody_knows_is_refused_whatever_is_allowed() -> None:
    everything = permissions(allow=[Rule("tool", "*")])
    assert everything.decide(ToolCall("1", "SHELL", {})).reason == "there is no tool 'SHELL'"


@table_test("name", ["file_path", "Path", "path ", "\uff50ath"])
def test_an_argument_that_a_tool_does_not_declare_is_no_way_round_a_rule(name: str) -> None:
    def run(**named: Any) -> str:
        return str(named)

    open_schema: dict[str, Any] = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
    }
    tool = Tool(name="read", description="Read.", parameters=open_schema, run=run, access={"path": "read"})
    policy = Policy(root="/w", allow=[Rule("read", "**"), Rule("tool", "*")])
    permissions = Permissions(
        policy, {"read": tool, "look": replace(tool, name="look", access={})}.get, EMPTY
    )
    assert permissions.decide(ToolCall("1", "read", {"path": "a", "lines": 3})).effect == "allow"
    found = permissions.decide(ToolCall("1", "read", {"path": "a", name: "/etc/passwd"}))
    assert (found.effect, found.reason) == (
        "deny",
        f"read declares no argument {name!r}, so no rule can check it; expected lines, path",
    )
    # A tool that says nothing of what it touches is allowed by its name, whatever it is given.
    assert permissions.decide(ToolCall("1", "look", {name: "/etc/passwd"})).effect == "allow"


def test_a_path_that_the_model_leaves_out_is_its_default() -> None:
    def list_files(path: str = "src", depth: int | None = None) -> str:
        """List files."""
        return path

    tool = tool_from(list_files, access={"path": "read"})
    call = ToolCall("1", "list_files", {})
    held = Permissions(Policy(root="/w", allow=[Rule("read", "src/**")]), {"list_files": tool}.get, EMPTY)
    assert held.decide(call).effect == "allow"
    held = Permissions(Policy(root="/w", allow=[Rule("read", "docs/**")]), {"list_files": tool}.get, EMPTY)
    assert held.decide(call).reason == "reading /w/src is not allowed by any rule"


@table_test(
    ("arguments", "effect"),
    [
        ({"source": "src/a"}, "allow"),
        ({"source": "src/a", "into": None}, "allow"),
        ({"source": "src/a", "into": "src/b"}, "deny"),
        ({"source": None, "into": None}, "deny"),
    ],
)
def test_an_optional_path_that_is_left_out_is_no_access(arguments: dict[str, Any], effect: str) -> None:
    def copy(source: str, into: str | None = None) -> None: ...

    tool = tool_from(copy, access={"source": "read", "into": "write"})
    held = Permissions(Policy(root="/w", allow=[Rule("read", "src/**")]), {"copy": tool}.get, EMPTY)
    assert held.decide(ToolCall("1", "copy", arguments)).effect == effect


@table_test(
    ("path", "effect"),
    [
        (".git/config", "deny"),
        ("vendor/.git/config", "deny"),
        ("a/.GIT/hooks/x", "deny"),
        ("vendor/.Hg/hgrc", "deny"),
        (".gitignore", "allow"),
        ("x.git/config", "allow"),
    ],
)
def test_what_is_protected_is_so_at_any_depth_and_in_any_case(path: str, effect: str) -> None:
    def write(path: str) -> None: ...

    tool = tool_from(write, access={"path": "write"})
    held = Permissions(Policy(root="/w", allow=[Rule("write", "**")]), {"write": tool}.get, EMPTY)
    assert held.decide(ToolCall("1", "write", {"path": path})).effect == effect


def test_a_call_without_any_path_needs_a_rule_for_its_tool() -> None:
    def list_files(path: str | None = None) -> None: ...

    tool, call = tool_from(list_files, access={"path": "read"}), ToolCall("1", "list_files", {})
    held = Permissions(Policy(root="/w", allow=[Rule("read", "**")]), {"list_files": tool}.get, EMPTY)
    assert held.decide(call).reason == "calling list_files is not allowed by any rule"
    held = Permissions(Policy(root="/w", allow=[Rule("tool", "list_files")]), {"list_files": tool}.get, EMPTY)
    assert held.decide(call).effect == "allow"


def test_the_root_of_a_policy_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    tool = tool_from(read, access={"path": "read"})
    policy = Policy(root=str(tmp_path / "link"), allow=[Rule("read", "**")])
    held = Permissions(policy, {"read": tool}.get, Disk())
    assert held.decide(ToolCall("1", "read", {"path": "a"})).effect == "allow"
    assert held.policy.root == str((tmp_path / "real").resolve())


@table_test(
    "pattern",
    ["sec/**", "keys/**", "/link/sec/**", "/link/keys/**", "/w/sec/**", "/link/./sec/*", "**/keys/*"],
)
@table_test("path", ["sec/a", "keys/a", "/link/sec/a", "/w/keys/a", "../link/sec/a", "other/a"])
def test_a_rule_over_a_link_refuses_and_asks_by_every_way(pattern: str, path: str) -> None:
    files = ScriptedFiles(
        {
            "/link": Entry(kind="link", target="w"),
            "/w/sec": Entry(kind="link", target="keys"),
            "/w/other": Entry(kind="link", target="sec"),
            "/w/keys/a": Entry(kind="file"),
        }
    )
    find = {"read": tool_from(read, access={"path": "read"})}.get
    for root in ("/w", "/link"):
        for effect in ("deny", "ask"):
            rules = {effect: [Rule("read", pattern)], "allow": [Rule("read", "**")]}
            held = Permissions(Policy(root=root, **rules), find, files)  # type: ignore[arg-type]  # lists by their names
            decision = held.decide(ToolCall("1", "read", {"path": path}))
            assert (decision.effect, decision.rule) == (effect, Rule("read", pattern))
            assert held.decide(ToolCall("1", "read", {"path": "free/a"})).effect == "allow"


def test_a_rule_is_about_how_a_path_is_spelled_too_and_one_over_a_loop_is_kept() -> None:
    files = ScriptedFiles(
        {"/w/x/sec": Entry(kind="link", target="../keys"), "/w/loop": Entry(kind="link", target="loop")}
    )
    deny = [Rule("read", "loop/**"), Rule("read", "**/sec/**")]
    held = permissions(
        tools=[tool_from(read, access={"path": "read"})], files=files, deny=deny, allow=[Rule("read", "**")]
    )
    assert held.decide(ToolCall("1", "read", {"path": "x/sec/a"})).rule == deny[1]
    assert held.decide(ToolCall("1", "read", {"path": "x/a"})).effect == "allow"


def read(path: str) -> str:
    return path


@table_test(
    ("make", "facts"),
    [
        (lambda: Rule("read", ""), "rule read: ; pattern is empty"),
        (lambda: Rule("read", "../a"), "rule read '../a': ; pattern without '..'"),
        (lambda: Rule("walk", "a"), "rule kind 'walk'; one of tool, read, write, host, command"),  # type: ignore[arg-type]
        (lambda: Policy(root="w"), "root 'w'; absolute path"),
        (
            lambda: tool_from(read, access={"path": "walk"}),  # type: ignore[dict-item]
            "tool 'read'; access 'walk'; expected read, write, host, command",
        ),
    ],
)
def test_rules_that_make_no_sense_are_refused(make: Callable[[], object], facts: str) -> None:
    with pytest.raises((BadInput, BadTool), match=line_with(*facts.split("; "))):
        make()


# -- approval ---------------------------------------------------------------------------------------------------

ASKS = permissions(tools=[tool_from(read, access={"path": "read"})], ask=[Rule("read", "**")])
CALL = ToolCall("1", "read", {"path": "a"})


def saying(
    answer: PersonSaid | str | Delayed, after: float = 0.0
) -> Callable[[Question], Awaitable[PersonSaid | str | Delayed]]:
    async def person(question: Question) -> PersonSaid | str | Delayed:
        assert question.confirms
        await asyncio.sleep(after)
        return answer

    return person


@table_test(
    ("person", "effect", "reason"),
    [
        (saying("y", 10), "allow", "a person allowed it"),
        (saying(PersonSaid("refused", "no")), "deny", "a person refused: no"),
        (saying("better not"), "deny", "a person refused: better not"),
        (saying("y", 301), "deny", "nobody answered within 300 seconds"),
        (saying(Delayed(10, "y")), "allow", "a person allowed it"),
        (saying(Delayed(301, "y")), "deny", "nobody answered within 300 seconds"),
        (None, "deny", "reading /w/a: there is no person to ask"),
    ],
)
def test_a_person_is_asked_under_asyncio_until_the_deadline(person: Any, effect: str, reason: str) -> None:
    decision = virtually(ASKS.allowed(CALL, person))
    assert (decision.effect, decision.reason) == (effect, reason)


def test_a_gate_lets_a_person_decide_in_the_loop_under_asyncio(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("kept")
    with Workspace(tmp_path) as workspace:
        registry = Registry(file_tools(workspace))
        policy = Policy(root=str(tmp_path), allow=[Rule("read", "**")], ask=[Rule("write", "**")])
        gate = PermissionGate(Permissions(policy, registry.get, Disk()))
        script = [
            tool_call("read_file", path="a"),
            tool_call("write_file", path="b", content="new"),
            tool_call("write_file", path="../c", content="new"),
            text("Done."),
        ]
        harness = AgentHarness(tools=registry, parts=Parts(gates=[gate]))

        async def work() -> list[dict[str, str | None]]:
            clock = LoopClock()
            run = harness.begin("Work.", clock=clock)
            model = model_of(ScriptedLLM({"agent": script}))
            await AsyncDriver(model, clock=clock.now, person=saying("y", 5)).run(run)
            assert len(run.refused) == 1
            return run.calls

        done = virtually(work())
    assert [call["result"] for call in done] == ["kept", "wrote 3 bytes"]
    assert (tmp_path / "b").read_text() == "new"
    assert not (tmp_path.parent / "c").exists()


def asked(typed: bytes, *, confirms: bool = True, seconds: float | None = None) -> tuple[PersonSaid, str]:
    """Ask a person at a terminal that gives these letters; return the answer and what was shown."""
    there, back = os.pipe()
    shown, shows = os.pipe()
    question = Question(
        token="1", job="main", tool="t", text="May\x1b[2J it?", seconds=seconds, confirms=confirms
    )

    async def ask() -> PersonSaid:
        person = TerminalPerson(os.fdopen(there), os.fdopen(shows, "w"))
        async with asyncio.timeout(seconds):
            return await person(question)

    os.write(back, typed)
    os.close(back)
    try:
        said = asyncio.run(ask())
        return said, os.read(shown, 1000).decode()
    finally:
        os.close(shown)


@table_test(
    ("typed", "kind"),
    [
        (b"y\n", "answered"),
        (b"YES\r\n", "answered"),
        (b"\n", "refused"),
        (b"yep\n", "refused"),
        (b"", "refused"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_at_a_terminal_leave_is_given_by_yes_alone(typed: bytes, kind: str) -> None:
    said, shown = asked(typed)
    assert said.kind == kind
    assert shown == "\nMay\\x1b[2J it? [y/N] "


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_at_a_terminal_a_question_is_answered_by_a_line() -> None:
    assert asked(b"Oslo\nmore\n", confirms=False)[0] == PersonSaid("answered", "Oslo")


# -- files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    with Workspace(root) as opened:
        yield opened


def test_files_are_written_read_listed_and_deleted(workspace: Workspace) -> None:
    workspace.write("src/a.txt", "long text")
    workspace.write("src/a.txt", "short")
    assert workspace.read(f"{workspace.root}/src/a.txt") == "short"
    assert (workspace.list(), workspace.list("src")) == (["src/"], ["a.txt"])
    workspace.delete("src/a.txt")
    workspace.delete("src")
    assert workspace.list() == []


def test_a_file_of_somebody_elses_is_whole_after_a_refused_write(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("whole")
    Path(workspace.root, "link").hardlink_to(tmp_path / "other")
    with pytest.raises(Outside, match="the file has 2 names"):
        workspace.write("link", "new")
    assert (tmp_path / "other").read_text() == "whole"


def test_a_file_is_whole_after_a_write_of_what_is_no_text(workspace: Workspace) -> None:
    workspace.write("a", "whole")
    for name in ("a", "b"):
        with pytest.raises(Outside, match="half of a surrogate pair"):
            workspace.write(name, "half \ud800")
    assert (workspace.read("a"), workspace.list()) == ("whole", ["a", "src/"])


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 11)
    with Workspace(tmp_path, size=10) as small, pytest.raises(Outside, match="larger than 10 bytes"):
        small.read("a")


def test_what_is_not_there_is_an_error_of_its_own(workspace: Workspace) -> None:
    with pytest.raises(FileNotFoundError):
        workspace.read("nothing")


def test_a_file_swapped_for_a_link_after_the_decision_is_not_read(tmp_path: Path) -> None:
    for name in ("a", "key"):
        (tmp_path / name).write_text(name)
    with Workspace(tmp_path) as opened:
        assert opened.read("a") == "a"
        (tmp_path / "a").unlink()
        (tmp_path / "a").symlink_to("key")
        (tmp_path / "folder").symlink_to(".")
        for path in ("a", "folder/key"):
            with pytest.raises(Outside, match="through a link"):
                opened.read(path)


def test_a_link_that_stays_inside_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    (tmp_path / "link").symlink_to("a")
    with Workspace(tmp_path) as opened:
        with pytest.raises(Outside, match="through a link"):
            opened.read("link")
        with pytest.raises(Outside, match="through a link"):
            opened.write("link", "new")


def test_nothing_beneath_is_opened_by_a_way_out(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        for path in ("..", "/etc", "../" + tmp_path.name):
            with pytest.raises(OSError, match=os.strerror(errno.EXDEV)):
                os.close(open_beneath(folder, path, os.O_RDONLY))
    finally:
        os.close(folder)


# -- scenarios --------------------------------------------------------------------------------------------------

HEAD = """
defaults: {{engine: agent}}
scenarios:
  - id: one
    title: One.
    tools: {{look: {{result: seen{tool}}}}}
    agents: {{assistant: {{prompt: Hi., harness: {{permissions: {{{rules}}}}}}}}}
    jobs: {{main: {{message: Work.}}}}
    script: {{assistant: [{{text: Done.}}]}}
    expect: {{}}
"""


@pytest.mark.parametrize(
    ("rules", "tool", "facts"),
    [
        ("allow: [{tool: lok}]", "", "tool 'lok'; 'look'?"),
        ("allow: [{read: a, write: b}]", "", "one of tool, read, write, host, command; got read and write"),
        ("allow: [{}]", "", "one of tool, read, write, host, command; got none"),
        ("allow: [{walk: a}]", "", "key 'walk'"),
        ("deny: [{read: ../a}]", "", "rule read '../a'; pattern without '..'"),
        ("root: w", "", "permissions.root: ; got 'w'"),
        ("root: /a/../b", "", "root '/a/../b'; absolute path without '..'"),
        ("files: {/w/a: {link: b, names: 2}}", "", "'link' excludes 'kind' and 'names'"),
        ("", ", access: {path: read}", "access names 'path'; not a parameter"),
    ],
)
def test_permissions_that_make_no_sense_are_refused_with_their_line(
    tmp_path: Path, rules: str, tool: str, facts: str
) -> None:
    file = tmp_path / "permissions.yaml"
    file.write_text(HEAD.format(rules=rules, tool=tool), encoding="utf-8")
    with pytest.raises(BadScenario, match=line_with(f"{file}:", *facts.split("; "))):
        load_or_fail([file])


def test_a_closed_workspace_opens_nothing_in_the_folder_that_has_its_number_now(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "a").write_text(folder.name)
    workspace = Workspace(mine)
    workspace.close()
    numbers = [os.open(other, os.O_RDONLY | os.O_DIRECTORY) for _ in range(3)]
    try:
        with pytest.raises(Outside, match=r"^'a': the workspace is closed$"):
            workspace.read("a")
        workspace.close()
        assert [os.listdir(number) for number in numbers] == [["a"]] * 3
    finally:
        for number in numbers:
            os.close(number)
