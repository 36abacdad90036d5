"""Loads eval files and reports all their problems at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput, BadScenario
from statek_sim.evals.expression import BadExpression, check_names
from statek_sim.evals.scenario import EvalScenario, told_names
from statek_sim.evals.schema import Change, Draw, EvalText, PlanStep, WantedCall, evals_schema
from statek_sim.scenario.files import find_files, is_eval_file, parsed
from statek_sim.scenario.jsonschema import Schema, options_of
from statek_sim.scenario.locate import findings_of, shown
from statek_sim.scenario.problem import MAX_PROBLEMS, Finding, Keypath, Problem
from statek_sim.scenario.tree import Node, find, node_value

_TAKEN: Final = frozenset({"row", "calls", "n", "last"})
"""Names reserved by the language."""

LEAST_WRONG: Final = 2
"""Minimum wrong scripts of every eval."""

Names = frozenset[str]


def findings(text: EvalText) -> Iterator[Finding]:
    """Yield the problems of an eval, each with its key path."""
    yield from _names(text)
    yield from _beginning(text)
    yield from _tools(text)
    yield from _check(text)
    if len(text.wrong) < LEAST_WRONG:
        yield Finding(("wrong",), f"wrong: expected {LEAST_WRONG} scripts or more that must fail")
    try:
        known = told_names(text)
    except BadExpression:
        return  # The task or the prompt cannot be parsed, which is already reported.
    yield from _plan(text, ("plan",), text.plan, known)
    everything = frozenset({*text.vary, *text.world, *text.facts})
    for at, wrong in enumerate(text.wrong):
        yield from _plan(text, ("wrong", at, "plan"), wrong.plan, everything)


def _names(text: EvalText) -> Iterator[Finding]:
    """Yield names that are used for two things."""
    seen: dict[str, str] = {}
    for part in ("vary", "world", "facts"):
        for name in getattr(text, part):
            if name in _TAKEN:
                yield Finding((part, name), f"{part}.{name}: the name is the language's own; take another")
            elif name in seen:
                yield Finding(
                    (part, name), f"{part}.{name}: the name is in {seen[name]} too; expected each once"
                )
            seen[name] = part


def _values(at: Keypath, value: Any, known: Iterable[str]) -> Iterator[Finding]:
    """Yield the problems of a value's expressions."""
    if isinstance(value, Draw):
        value = [value.one_of or (), value.code or ""]
    try:
        check_names(value, frozenset(known), _dotted(at))
    except BadExpression as error:
        yield Finding(at, str(error))


def _expression(at: Keypath, source: str | None, known: Iterable[str]) -> Iterator[Finding]:
    if source is not None:
        yield from _values(at, f"={source}", known)


def _dotted(at: Keypath) -> str:
    return ".".join(map(str, at))


def _beginning(text: EvalText) -> Iterator[Finding]:
    known: list[str] = []
    for name, value in text.vary.items():
        yield from _values(("vary", name), value, known)
        known.append(name)
    for part in ("task", "prompt"):
        yield from _values((part,), getattr(text, part), known)
    for name, table in text.world.items():
        for number, row in enumerate(table.rows):
            yield from _values(("world", name, "rows", number), row, known)
        for number, more in enumerate(table.more):
            columns = [*known, "n"]
            for key, value in more.row.items():
                yield from _values(("world", name, "more", number, "row", key), value, columns)
                columns.append(key)
        known.append(name)
    for name, value in text.facts.items():
        yield from _values(("facts", name), value, known)
        known.append(name)


def _tools(text: EvalText) -> Iterator[Finding]:
    for name, tool in text.tools.items():
        at: Keypath = ("tools", name)
        for key in tool.parameters:
            if key in text.world or key in _TAKEN:
                message = f"argument {key!r}: the name is a table's or the language's own; take another"
                yield Finding((*at, "parameters", key), message)
        for key in tool.optional:
            if key not in tool.parameters:
                yield Finding(
                    (*at, "optional"), f"optional: {key!r} is no parameter{_near(key, tool.parameters)}"
                )
        known = {*text.world, *tool.parameters, "calls"}
        for number, refusal in enumerate(tool.refuses):
            yield from _expression((*at, "refuses", number, "when"), refusal.when, known)
            yield from _values((*at, "refuses", number, "says"), refusal.says, known)
        if tool.fails is not None:
            yield from _expression((*at, "fails", "when"), tool.fails.when, known)
            yield from _values((*at, "fails", "says"), tool.fails.says, known)
            applied = tool.fails.applied
            yield from _expression(
                (*at, "fails", "applied"), None if isinstance(applied, bool) else applied, known
            )
        for number, change in enumerate(tool.changes):
            yield from _change((*at, "changes", number), change, text, known)
        yield from _values((*at, "gives"), tool.gives, known)
    for name, approval in text.approvals.items():
        yield from _tool_there(("approvals", name), name, text)
        if name in text.tools:
            known = {*text.world, *text.tools[name].parameters}
            yield from _expression(("approvals", name, "allows"), approval.allows, known)
            yield from _values(("approvals", name, "because"), approval.because, known)


def _change(at: Keypath, change: Change, text: EvalText, known: Iterable[str]) -> Iterator[Finding]:
    if change.table not in text.world:
        yield Finding(at, f"there is no table {change.table!r}{_near(change.table, text.world)}")
    inner, wrong = _each((*at, "for"), change.each, known)
    yield from wrong
    yield from _values((*at, "row"), change.row, inner)
    yield from _expression((*at, "where"), change.where, {*known, "row"})
    yield from _values((*at, "set"), change.set, {*known, "row"})


def _check(text: EvalText) -> Iterator[Finding]:
    known = {*text.vary, *text.world, *text.facts}
    for number, wanted_call in enumerate(text.check.calls):
        at: Keypath = ("check", "calls", number)
        if isinstance(wanted_call, tuple):
            for inner, wanted in enumerate(wanted_call):
                yield from _wanted((*at, inner), wanted, text, known)
        else:
            yield from _wanted(at, wanted_call, text, known)
    for number, wanted in enumerate(text.check.never):
        yield from _wanted(("check", "never", number), wanted, text, known)
    for number, change in enumerate(text.check.changes):
        yield from _change(("check", "changes", number), change, text, known)
    for number, cited in enumerate(text.check.cites):
        yield from _values(("check", "cites", number, "value"), cited.value, known)
        if cited.found_by is not None:
            yield from _tool_there(("check", "cites", number, "from"), cited.found_by, text)
    yield from _values(("check", "avoids"), text.check.avoids, known)
    for name in text.check.ignore:
        if name not in text.world:
            yield Finding(("check", "ignore"), f"there is no table {name!r}{_near(name, text.world)}")
    for name in text.check.most:
        yield from _tool_there(("check", "most", name), name, text)


def _wanted(at: Keypath, wanted: WantedCall, text: EvalText, known: Iterable[str]) -> Iterator[Finding]:
    yield from _tool_there((*at, "tool"), wanted.tool, text)
    yield from _arguments((*at, "with"), wanted.tool, wanted.arguments, text)
    inner, wrong = _each((*at, "for"), wanted.each, known)
    yield from wrong
    yield from _values((*at, "with"), wanted.arguments, inner)
    yield from _expression((*at, "if"), wanted.condition, known)


def _plan(text: EvalText, at: Keypath, steps: Sequence[PlanStep], known: Iterable[str]) -> Iterator[Finding]:
    """Yield the problems of a plan; each step may use names bound by earlier ones."""
    names = {*known}
    for number, step in enumerate(steps):
        here: Keypath = (*at, number)
        yield from _expression((*here, "if"), step.condition, names)
        yield from _values((*here, "answer"), step.answer, names)
        for name, value in (step.let or {}).items():
            yield from _values((*here, "let", name), value, names)
            names.add(name)
        if step.call is not None:
            yield from _call(text, here, step, names)
        if step.unless is not None:
            yield from _wanted((*here, "unless"), step.unless, text, names)
        yield from _plan(text, (*here, "together"), step.together, names)
        inner, wrong = _each((*here, "for"), step.each if step.do else None, names)
        yield from wrong
        yield from _plan(text, (*here, "do"), step.do, inner)
        yield from _plan(text, (*here, "otherwise"), step.otherwise, names)
        names |= {*_bound(step)}
    if at == ("plan",) and not _answers(steps):
        yield Finding(at, "the plan has no answer at its end")


def _answers(steps: Sequence[PlanStep]) -> bool:
    return bool(steps) and steps[-1].answer is not None


def _bound(step: PlanStep) -> Iterator[str]:
    if step.bind is not None:
        yield step.bind
    yield from step.let or ()
    for inner in (*step.together, *step.do, *step.otherwise):
        yield from _bound(inner)


def _call(text: EvalText, at: Keypath, step: PlanStep, names: Names | set[str]) -> Iterator[Finding]:
    assert step.call is not None
    yield from _tool_there((*at, "call"), step.call, text)
    if at[0] == "plan" and step.call in text.tools and text.tools[step.call].distractor:
        yield Finding((*at, "call"), f"the plan calls {step.call!r}, which is a distractor")
    yield from _arguments((*at, "with"), step.call, step.arguments, text)
    inner, wrong = _each((*at, "for"), step.each, names)
    yield from wrong
    inner = inner | {"n", "last"} if step.again is not None else inner
    yield from _values((*at, "with"), step.arguments, inner)
    yield from _expression((*at, "while"), step.again, inner)


def _each(at: Keypath, source: str | None, known: Iterable[str]) -> tuple[Names, list[Finding]]:
    names = frozenset(known)
    if source is None:
        return names, []
    name, found, items = source.partition(" in ")
    if not found or not name.strip().isidentifier():
        return names, [Finding(at, f"{source!r}: expected 'name in EXPRESSION'")]
    return names | {name.strip()}, list(_expression(at, items, names))


def _tool_there(at: Keypath, name: str, text: EvalText) -> Iterator[Finding]:
    if name not in text.tools:
        yield Finding(at, f"there is no tool {name!r}{_near(name, text.tools)}")


def _arguments(at: Keypath, tool: str, given: Mapping[str, Any], text: EvalText) -> Iterator[Finding]:
    known = text.tools[tool].parameters if tool in text.tools else given
    for key in given:
        if key not in known:
            yield Finding(at, f"{tool} has no argument {key!r}{_near(key, known)}")


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = suggestion(name, names)
    return f".{near}" if near else f"; there are {', '.join(names) or 'none'}"


EVALS: Final = "evals"


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """The loaded evals, without those that have problems, and the problems."""

    evals: tuple[EvalScenario, ...]
    problems: tuple[Problem, ...]


def load_paths(paths: Iterable[Path | str]) -> LoadedSuite:
    """Return the evals in the files at or under `paths`, in the order of the files, and all problems.

    Other files in a folder are skipped; a file that is named has to be an eval file.
    """
    given = [Path(path) for path in paths]
    files, wrong = find_files(given)
    problems = list(wrong)
    evals: dict[str, EvalScenario] = {}
    for path in [path for path in files if path in given or is_eval_file(path)]:
        found_wrong = 0
        for loaded in _load_file(path):
            if isinstance(loaded, Problem):
                problems.append(loaded)
                found_wrong += 1
                if found_wrong == MAX_PROBLEMS:
                    break
                continue
            first = evals.setdefault(loaded.id, loaded)
            if first is not loaded:
                message = f"duplicate id {loaded.id!r}, first at {first.path}:{first.line}"
                problems.append(Problem(path, loaded.line, 1, message))
    if not evals and not problems:
        problems.append(
            Problem(given[0] if given else Path(), 0, 0, "no evals here, expected files with the key 'evals'")
        )
    return LoadedSuite(tuple(evals.values()), tuple(problems))


def load_suite(paths: Iterable[Path | str]) -> tuple[EvalScenario, ...]:
    """Return the evals at or under `paths`; raises BadScenario, one `path:line: message` per problem."""
    loaded = load_paths(paths)
    if loaded.problems:
        raise BadScenario("\n".join(map(str, loaded.problems)))
    return loaded.evals


def _load_file(path: Path) -> Iterator[EvalScenario | Problem]:
    found = parsed(path)
    if isinstance(found, Problem):
        yield found
        return
    root = found.root
    value = None if root is None else node_value(root)
    entries = value.get(EVALS) if isinstance(value, dict) else None
    if root is None or not isinstance(value, dict) or not isinstance(entries, list) or not entries:
        yield Problem(path, 1, 1, f"expected a mapping with a list under 'evals', got {shown(value)}")
        return
    for key in value:
        if key != EVALS:
            yield _problem(path, root, Finding((key,), f"unknown key {key!r}, expected 'evals' alone"))
    for position, entry in enumerate(entries):
        yield from _load_eval(path, root, (EVALS, position), entry)


def _load_eval(path: Path, root: Node, at: Keypath, entry: object) -> Iterator[EvalScenario | Problem]:
    label = str(entry["id"]) if isinstance(entry, dict) and "id" in entry else f"number {int(at[-1]) + 1}"
    try:
        text = EvalText.model_validate(entry)
        wrong = list(findings(text))
    except ValidationError as error:
        wrong = findings_of(error, entry, prefix=at, options=_options)  # type: ignore[arg-type]  # it was read as JSON
    if not wrong:
        node, _ = find(root, at)
        scenario = EvalScenario(text=text, path=path, line=node.line)
        broken = _begins(scenario)
        if broken is None:
            yield scenario
            return
        wrong = [Finding((), broken)]
    yield from sorted(
        _problem(path, root, Finding((*at, *finding.keypath), f"eval {label!r}: {finding.message}"))
        for finding in wrong
    )


@cache
def _schema() -> Schema:
    return evals_schema()


def _options(keypath: Keypath) -> tuple[str, ...]:
    return options_of(_schema(), keypath)


def _begins(scenario: EvalScenario) -> str | None:
    """Return why no instance of an eval can be created, None if one can."""
    try:
        scenario.instance(0)
    except (BadInput, LookupError) as error:
        return f"its world cannot begin: {error}"
    return None


def _problem(path: Path, root: Node, finding: Finding) -> Problem:
    node, _ = find(root, finding.keypath)
    return Problem(path, node.line, node.column, finding.message)
