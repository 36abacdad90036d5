"""Decides, according to a policy, whether a call is refused, needs a person's approval, or is allowed.

Three lists of rules are checked in order: deny, ask, allow. A call that no rule allows is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal, get_args

from statek_sim.agent.effects import ToolCall
from statek_sim.agent.option_names import PROTECTED, Access, RuleKind
from statek_sim.agent.permissions.commands import (
    beginnings,
    covers_command,
    runs_nothing,
    simple_commands,
    unreadable,
    unreadable_line,
)
from statek_sim.agent.permissions.paths import (
    Files,
    Unclear,
    covers,
    covers_host,
    folded,
    host_of,
    led,
    lexical,
    protected_name,
    resolved,
)
from statek_sim.agent.tools.tool import Tool
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its kind, and a pattern for it (a path, host, command, or tool name)."""

    kind: RuleKind
    pattern: str

    def __post_init__(self) -> None:
        if self.kind not in get_args(RuleKind):
            raise BadInput(
                f"unknown rule kind {self.kind!r}; expected one of {', '.join(get_args(RuleKind))}"
            )
        if not self.pattern:
            raise BadInput(f"rule {self.kind}: the pattern is empty")
        if self.kind in ("read", "write") and ".." in self.pattern.split("/"):
            raise BadInput(f"rule {self.kind} {self.pattern!r}: expected a pattern without '..'")

    def __str__(self) -> str:
        return f"{self.kind} {self.pattern}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules for calls. `root` is the absolute folder that relative paths and patterns start from.

    A person has `seconds` to answer (None: no limit). A file with more than one name is refused unless `hard_links` are
    allowed, because its other names may be anywhere.
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
            raise BadInput(f"policy root {self.root!r}: expected an absolute path without '..'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A policy's decision on a call, with the reason. `rule` is the rule that decided, or None if no rule matched."""

    effect: Literal["allow", "ask", "deny"]
    reason: str
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class _Need:
    """An access that a call needs: its kind, the value compared with rules, and a description for messages."""

    kind: RuleKind
    value: str
    shown: str
    opaque: bool = False
    """Whether this is a command that cannot be parsed."""
    reads: bool = False
    """Whether this is a command that runs none of its arguments."""
    unreadable: str | None = None
    """Why a command cannot be analysed, or None."""
    spelled: str = ""
    """The absolute path as the model wrote it, with links unresolved."""


@dataclass(frozen=True, slots=True)
class _Refused(Exception):
    reason: str
    rule: Rule | None = field(default=None)


def decide(policy: Policy, tool: Tool | None, call: ToolCall, files: Files) -> Decision:
    """Return a policy's decision on a call; `tool` is None for an unknown tool."""
    try:
        if tool is None:
            raise _Refused(f"there is no tool {call.name!r}")
        return _of_needs(policy, list(_needs(policy, tool, call, files)), files)
    except _Refused as refused:
        return Decision(effect="deny", reason=refused.reason, rule=refused.rule)


def _of_needs(policy: Policy, needs: Sequence[_Need], files: Files) -> Decision:
    """Return the rules' decision on all of a call's accesses: deny before ask, ask before allow."""
    for need in needs:
        if (rule := _against(policy.deny, need, policy, files)) is not None:
            raise _Refused(f"{need.shown} is denied", rule)
    for need in needs:
        rule = None if need.unreadable is None else _first(policy.deny, "command")
        if rule is not None and _matching(policy.allow, need, policy) is not None:
            raise _Refused(f"{need.shown} cannot be checked against the deny rules: {need.unreadable}", rule)
    for need in needs:
        if (rule := _against(policy.ask, need, policy, files)) is not None:
            return Decision(effect="ask", reason=need.shown, rule=rule)
        rule = _first(policy.ask, "command") if need.unreadable is not None else None
        if rule is not None and _matching(policy.allow, need, policy) is not None:
            reason = f"{need.shown.rstrip(',')}: {need.unreadable}"
            return Decision(effect="ask", reason=reason, rule=rule)
    # A tool that declares its accesses is allowed by rules for those, any other tool by its name.
    named = [need for need in needs if need.kind != "tool"] or needs
    rules = [_matching(policy.allow, need, policy) for need in named]
    for need, found in zip(named, rules, strict=True):
        if found is None:
            raise _Refused(f"{need.shown} is not allowed by any rule")
    return Decision(effect="allow", reason="allowed", rule=rules[0])


def _needs(policy: Policy, tool: Tool, call: ToolCall, files: Files) -> Iterator[_Need]:
    yield _Need("tool", tool.name, f"calling {tool.name}")
    _check_declared(tool, call)
    for argument, kind in tool.access.items():
        declared = _declared(tool, argument)
        value = call.arguments.get(argument, declared.get("default"))
        if value is None and "default" in declared and declared["default"] is None:
            # Without a path, a host or a command, rules are matched against the tool's name.
            continue
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


def _declared(tool: Tool, argument: str) -> Mapping[str, object]:
    """Return an argument's schema, or an empty one if it has none."""
    properties = tool.parameters.get("properties")
    declared = properties.get(argument) if isinstance(properties, Mapping) else None
    return declared if isinstance(declared, Mapping) else {}


def _check_declared(tool: Tool, call: ToolCall) -> None:
    """Reject an argument that the schema does not declare: the tool may use it as a path that no rule checks."""
    if not tool.access:
        return
    properties = tool.parameters.get("properties")
    declared = {*tool.access, *(properties if isinstance(properties, Mapping) else ())}
    unknown = next((name for name in call.arguments if name not in declared), None)
    if unknown is not None:
        raise _Refused(
            f"{tool.name} declares no argument {unknown!r}, so no rule can check it; "
            f"expected {', '.join(sorted(declared))}"
        )


def _path(policy: Policy, kind: Access, path: str, files: Files) -> _Need:
    shown = f"{'reading' if kind == 'read' else 'writing'} {path}"
    found = files.look(path)
    if found is not None and found.kind == "other":
        raise _Refused(f"{shown}: not a file or folder")
    if found is not None and found.kind == "file" and found.links > 1 and not policy.hard_links:
        raise _Refused(f"{shown}: the file has {found.links} names, and the others may be anywhere")
    if kind == "write":
        if path == policy.root or policy.root.startswith(f"{path.rstrip('/')}/"):
            raise _Refused(f"{shown}: the root folder itself cannot be written to")
        # Only the part below the root: the user's root may itself be inside such a place.
        inside = path.removeprefix(f"{policy.root.rstrip('/')}/")
        if (name := protected_name(inside, policy.protected)) is not None:
            raise _Refused(f"{shown}: {name} is protected")
    return _Need(kind, path, shown)


def _commands(tool: Tool, value: object) -> Iterator[_Need]:
    if not tool.sandboxed:
        raise Unclear("commands run only in a sandbox")
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise Unclear("not a command")
    try:
        commands = simple_commands(value)
        for at, command in enumerate(commands):
            # Another program may run a file that this one only writes.
            written = "|" in value and not all(map(runs_nothing, commands[at + 1 :]))
            reads = runs_nothing(command) and not written
            yield _Need(
                "command", command, f"running {command!r}", reads=reads, unreadable=unreadable(command)
            )
    except Unclear as unclear:
        shown = f"running {value!r}, which cannot be analysed ({unclear}),"
        yield _Need("command", value, shown, opaque=True, unreadable=unreadable_line(value))


def _matching(rules: Sequence[Rule], need: _Need, policy: Policy) -> Rule | None:
    """Return the first allowing rule that covers an access, or None."""
    covering = (
        rule for rule in rules if rule.kind == need.kind and _covers(rule, need, policy, loosely=False)
    )
    return next(covering, None)


def _against(rules: Sequence[Rule], need: _Need, policy: Policy, files: Files) -> Rule | None:
    """Return the first denying or asking rule that may cover an access, also through links, or None."""
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
            if loosely:
                return _may_run(rule.pattern, need)
            # A line that cannot be parsed is allowed only by `*`.
            return rule.pattern == "*" or (not need.opaque and covers_command(rule.pattern, need.value))


def _may_run(pattern: str, need: _Need) -> bool:
    """Return whether a rule covers a command, or another command that it may run."""
    if pattern == "*" or covers_command(pattern, need.value):
        return True
    if need.reads:
        return False
    wanted = folded(pattern)
    return any(covers_command(wanted, folded(beginning)) for beginning in beginnings(need.value))


def _first(rules: Sequence[Rule], kind: RuleKind) -> Rule | None:
    return next((rule for rule in rules if rule.kind == kind), None)
