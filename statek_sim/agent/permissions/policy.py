"""What a policy says of a call: refused, a person is asked, or allowed. Pure.

Rules of three lists are looked at in this order: deny, ask, allow; what no rule allows is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

from statek_sim.agent.effects import ToolCall
from statek_sim.agent.permissions.commands import covers_command, simple_commands
from statek_sim.agent.permissions.hosts import covers_host, host_of
from statek_sim.agent.permissions.paths import (
    Files,
    Unclear,
    covers,
    folded,
    led,
    lexical,
    protected_name,
    resolved,
)
from statek_sim.agent.tools.tool import Access, Tool
from statek_sim.errors import BadInput

_BREAKS: Final = re.compile(r"""[\s;&|()<>{}`$!'"]+""")
"""What may stand before or behind a command."""
_ENDS: Final = re.compile(r"[\n;&|()<>{}`$]+")
"""What may end one."""
Kind = Literal["tool", "read", "write", "host", "command"]
PROTECTED: Final = (".git", ".hg", ".svn", ".statek")
"""Names of places that are never written to, wherever they are: what is in them runs later, or is the harness's."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it is about, and a pattern of it (a path, host, command, or the name of a tool)."""

    kind: Kind
    pattern: str

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise BadInput(f"rule of {self.kind!r}; expected one of {', '.join(get_args(Kind))}")
        if not self.pattern:
            raise BadInput(f"rule {self.kind}: its pattern is empty")
        if self.kind in ("read", "write") and ".." in self.pattern.split("/"):
            raise BadInput(f"rule {self.kind} {self.pattern!r}: expected a pattern without '..'")

    def __str__(self) -> str:
        return f"{self.kind} {self.pattern}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What calls may do. `root` is the absolute folder that relative paths and patterns start at.

    `seconds` a person has to answer what is asked (None: as long as it takes). A file with more than one name is
    refused unless `hard_links` are allowed: another name of it may be anywhere.
    """

    root: str
    allow: Sequence[Rule] = ()
    ask: Sequence[Rule] = ()
    deny: Sequence[Rule] = ()
    protected: tuple[str, ...] = PROTECTED
    seconds: float | None = 300.0
    hard_links: bool = False

    def __post_init__(self) -> None:
        if not self.root.startswith("/") or ".." in self.root.split("/"):
            raise BadInput(f"root {self.root!r} of a policy; expected an absolute path without '..'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a policy says of a call, and why; `rule` is the one that decided, None when none did."""

    effect: Literal["allow", "ask", "deny"]
    reason: str
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class _Need:
    """One thing a call needs: of this kind, and how it is compared and shown."""

    kind: Kind
    value: str
    shown: str
    opaque: bool = False
    """A command that cannot be taken apart."""
    spelled: str = ""
    """A path as it was spelled, over links."""


@dataclass(frozen=True, slots=True)
class _Refused(Exception):
    reason: str
    rule: Rule | None = field(default=None)


def decide(policy: Policy, tool: Tool | None, call: ToolCall, files: Files) -> Decision:
    """Return what a policy says of a call of a tool, None for one that nobody knows."""
    try:
        if tool is None:
            raise _Refused(f"there is no tool {call.name!r}")
        needs = list(_needs(policy, tool, call, files))
        for need in needs:
            if (rule := _against(policy.deny, need, policy, files)) is not None:
                raise _Refused(f"{need.shown} is denied", rule)
        for need in needs:
            if (rule := _against(policy.ask, need, policy, files)) is not None:
                return Decision(effect="ask", reason=need.shown, rule=rule)
        # A tool that says what it touches is allowed by that, and any other one by its name.
        named = [need for need in needs if need.kind != "tool"] or needs
        rules = [_matching(policy.allow, need, policy) for need in named]
        for need, found in zip(named, rules, strict=True):
            if found is None:
                raise _Refused(f"{need.shown} is not allowed by any rule")
        return Decision(effect="allow", reason="allowed", rule=rules[0])
    except _Refused as refused:
        return Decision(effect="deny", reason=refused.reason, rule=refused.rule)


def _needs(policy: Policy, tool: Tool, call: ToolCall, files: Files) -> Iterator[_Need]:
    yield _Need("tool", tool.name, f"calling {tool.name}")
    for argument, kind in tool.access.items():
        value = call.arguments.get(argument)
        try:
            if kind in ("read", "write"):
                need = _path(policy, kind, resolved(value, policy.root, files), files)
                yield replace(need, spelled=lexical(str(value), policy.root))
            elif kind == "host":
                host = host_of(value)
                yield _Need("host", host, f"talking to {host}")
            else:
                yield from _commands(tool, value)
        except Unclear as unclear:
            raise _Refused(f"argument {argument!r} of {tool.name}: {unclear}") from None


def _path(policy: Policy, kind: Access, path: str, files: Files) -> _Need:
    shown = f"{'reading' if kind == 'read' else 'writing'} {path}"
    found = files.look(path)
    if found is not None and found.kind == "other":
        raise _Refused(f"{shown}: it is no file or folder")
    if found is not None and found.kind == "file" and found.links > 1 and not policy.hard_links:
        raise _Refused(f"{shown}: the file has {found.links} names, and another one may be anywhere")
    if kind == "write":
        if path == policy.root or policy.root.startswith(f"{path.rstrip('/')}/"):
            raise _Refused(f"{shown}: it is the root of what may be written in")
        # The part below the root: a root of somebody's may well be below such a place itself.
        inside = path.removeprefix(f"{policy.root.rstrip('/')}/")
        if (name := protected_name(inside, policy.protected)) is not None:
            raise _Refused(f"{shown}: {name} is protected")
    return _Need(kind, path, shown)


def _commands(tool: Tool, value: object) -> Iterator[_Need]:
    if not tool.sandboxed:
        raise Unclear("it is a command, and those run in a sandbox only")
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise Unclear("it is no command")
    try:
        for command in simple_commands(value):
            yield _Need("command", command, f"running {command!r}")
    except Unclear as unclear:
        yield _Need("command", value, f"running {value!r}, of which {unclear},", opaque=True)


def _matching(rules: Sequence[Rule], need: _Need, policy: Policy) -> Rule | None:
    """Return the first rule that covers a need, for what is allowed."""
    for rule in rules:
        if rule.kind == need.kind and _covers(rule, need, policy, loosely=False):
            return rule
    return None


def _against(rules: Sequence[Rule], need: _Need, policy: Policy, files: Files) -> Rule | None:
    """Return the first rule that may cover a need, for what is refused or asked: a path or rule may go over links."""
    for rule in rules:
        if rule.kind != need.kind:
            continue
        ways = [(rule, need)]
        if need.kind in ("read", "write"):
            patterns = (rule, replace(rule, pattern=led(rule.pattern, policy.root, files)))
            paths = (need, replace(need, value=need.spelled))
            ways = [(pattern, path) for pattern in patterns for path in paths]
        if any(_covers(pattern, path, policy, loosely=True) for pattern, path in ways):
            return rule
    return None


def _covers(rule: Rule, need: _Need, policy: Policy, *, loosely: bool) -> bool:
    match need.kind:
        case "read" | "write":
            return covers(rule.pattern, need.value, policy.root, loosely=loosely)
        case "host":
            return covers_host(rule.pattern, need.value, loosely=loosely)
        case "tool":
            if loosely:
                return fnmatchcase(folded(need.value), folded(rule.pattern))
            return fnmatchcase(need.value, rule.pattern)
        case "command":
            if not need.opaque:
                return covers_command(rule.pattern, need.value)
            # Allowed by `*` only; what is refused or asked may begin at each of its words.
            rests = _rests(need.value) if loosely else ()
            return rule.pattern == "*" or any(covers_command(rule.pattern, rest) for rest in rests)


def _rests(line: str) -> Iterator[str]:
    """Yield what may be a command in a line that cannot be taken apart: as it is, by its parts, without its quotes."""
    joined = line.replace("\\\n", "")
    bare = re.sub(r"""[\\'"]""", "", joined)
    lists = [line.split(), _BREAKS.split(joined), _BREAKS.split(bare), *map(str.split, _ENDS.split(bare))]
    for words in ([word for word in found if word] for found in lists):
        yield from (" ".join(words[at:]) for at in range(len(words)))
