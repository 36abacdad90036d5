"""Loads eval files and reports all problems together, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput, BadScenario
from statek_sim.evals.expression import BadExpression, check_names, expressions_in
from statek_sim.evals.scenario import EvalScenario, told_names
from statek_sim.evals.schema import Change, Cited, Draw, EvalText, PlanStep, WantedCall, evals_schema
from statek_sim.scenario.calls import conditions_in
from statek_sim.scenario.files import find_files, is_eval_file, located, parsed
from statek_sim.scenario.locate import Schema, findings_of, options_of
from statek_sim.scenario.part import Part
from statek_sim.scenario.problem import MAX_PROBLEMS, Finding, Keypath, Problem, shown
from statek_sim.scenario.tree import Node, find, node_value

_TAKEN: Final = frozenset({"row", "calls", "n", "last"})
"""Names reserved by the expression language."""

LEAST_WRONG: Final = 2
"""The minimum number of incorrect scripts per eval."""

Names = frozenset[str]

_EXPRESSIONS: Final = frozenset({"when", "condition", "again", "allows", "where", "applied"})
"""Keys whose value is an expression."""

_VALUES: Final = frozenset(
    {"says", "gives", "row", "set", "arguments", "answer", "value", "avoids", "because"}
)
"""Keys whose value may contain expressions or templates."""


def findings(text: EvalText) -> Iterator[Finding]:
    """Yield an eval's problems, each with the key path to its location."""
    yield from _names(text)
    yield from _beginning(text)
    yield from _tools(text)
    yield from _part(("check",), text.check, frozenset({*text.vary, *text.world, *text.facts}), text)
    for name in text.check.ignore:
        yield from _known(("check", "ignore"), name, text.world, "table")
    for number, name in enumerate(text.check.never_called):
        yield from _pattern(("check", "never_called", number), name, text)
    for name in text.check.at_most:
        yield from _pattern(("check", "at_most", name), name, text)
    if len(text.wrong) < LEAST_WRONG:
        yield Finding(("wrong",), f"wrong: expected at least {LEAST_WRONG} scripts that must fail")
    try:
        known = told_names(text)
    except BadExpression:
        return  # The task or the prompt cannot be parsed, which is already reported.
    yield from _plan(text, ("plan",), text.plan, known)
    if not text.plan or text.plan[-1].answer is None:
        yield Finding(("plan",), "the plan does not end with an answer")
    everything = frozenset({*text.vary, *text.world, *text.facts})
    for at, wrong in enumerate(text.wrong):
        yield from _plan(text, ("wrong", at, "plan"), wrong.plan, everything)


def _names(text: EvalText) -> Iterator[Finding]:
    """Yield a problem for each name that is reserved or defined twice."""
    seen: dict[str, str] = {}
    for part in ("vary", "world", "facts"):
        for name in getattr(text, part):
            if name in _TAKEN:
                yield Finding((part, name), f"{part}.{name}: the name is reserved; use another")
            elif name in seen:
                yield Finding(
                    (part, name),
                    f"{part}.{name}: the name is also used in {seen[name]}; expected unique names",
                )
            seen[name] = part


def _values(at: Keypath, value: Any, known: Iterable[str]) -> Iterator[Finding]:
    """Yield the problems with the expressions in a value; `known` are the names that they may use."""
    if isinstance(value, Draw):
        value = [value.one_of or (), value.code or ""]
    try:
        check_names(value, frozenset(known), ".".join(map(str, at)))
    except BadExpression as error:
        yield Finding(at, str(error))


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
                message = f"argument {key!r}: the name is reserved or names a table; use another"
                yield Finding((*at, "parameters", key), message)
        for key in tool.optional:
            if key not in tool.parameters:
                yield Finding(
                    (*at, "optional"), f"optional: {key!r} is not a parameter{_near(key, tool.parameters)}"
                )
        yield from _part(at, tool, frozenset({*text.world, *tool.parameters, "calls"}), text)
    for name, approval in text.approvals.items():
        yield from _known(("approvals", name), name, text.tools, "tool")
        if name in text.tools:
            known = frozenset({*text.world, *text.tools[name].parameters})
            yield from _part(("approvals", name), approval, known, text)


def _plan(text: EvalText, at: Keypath, steps: Sequence[PlanStep], known: Iterable[str]) -> Iterator[Finding]:
    """Yield the problems in a plan; each step may use the names bound by earlier steps."""
    names = frozenset(known)
    for number, step in enumerate(steps):
        here: Keypath = (*at, number)
        for name, value in (step.let or {}).items():
            yield from _values((*here, "let", name), value, names)
            names |= {name}
        yield from _part(here, step, names, text)
        if at[0] == "plan" and step.call in text.tools and text.tools[step.call].distractor:
            yield Finding((*here, "call"), f"the plan calls {step.call!r}, which is a distractor")
        inner, _ = _each((), step.each, names)
        for key, bound in (("together", names), ("do", inner), ("otherwise", names)):
            yield from _plan(text, (*here, key), getattr(step, key), bound)
        names |= {*_bound(step)}


def _bound(step: PlanStep) -> Iterator[str]:
    if step.bind is not None:
        yield step.bind
    yield from step.let or ()
    for inner in (*step.together, *step.do, *step.otherwise):
        yield from _bound(inner)


def _part(at: Keypath, part: Any, known: Names, text: EvalText) -> Iterator[Finding]:
    """Yield the problems in a part and the parts inside it; `known` are the names that expressions may use.

    `_plan` checks the steps inside a step, because they may use more names.
    """
    if isinstance(part, tuple):
        for number, item in enumerate(part):
            yield from _part((*at, number), item, known, text)
    if not isinstance(part, Part) or (isinstance(part, PlanStep) and not isinstance(at[-1], int)):
        return
    inner, wrong = _each((*at, "for"), getattr(part, "each", None), known)
    yield from wrong
    yield from _references(at, part, text)
    for key, value in part.said_items():
        here: Keypath = (*at, type(part).model_fields[key].alias or key)
        if key in _EXPRESSIONS and not isinstance(value, bool | None):
            yield from _values(here, f"={value}", _scope(part, key, known, inner))
        elif key in _VALUES:
            yield from _values(here, value, _scope(part, key, known, inner))
        elif key not in ("together", "do", "otherwise"):
            yield from _part(here, value, known, text)


def _scope(part: Part, key: str, known: Names, inner: Names) -> Names:
    """Return the names that expressions under a part's key may use; `inner` includes the name in its `for`."""
    if key in ("condition", "answer"):
        return known
    if isinstance(part, Change) and key in ("where", "set"):
        return known | {"row"}
    return inner | {"n", "last"} if isinstance(part, PlanStep) and part.again is not None else inner


def _references(at: Keypath, part: Part, text: EvalText) -> Iterator[Finding]:
    """Yield a problem for each table, tool or argument that a part names but the eval does not define."""
    match part:
        case Change():
            yield from _known(at, part.table, text.world, "table")
        case Cited(found_by=str(tool)):
            yield from _known((*at, "from"), tool, text.tools, "tool")
        case WantedCall(tool=str(tool)) | PlanStep(call=str(tool)):
            key = "call" if isinstance(part, PlanStep) else "tool"
            yield from _known((*at, key), tool, text.tools, "tool")
            arguments = text.tools[tool].parameters if tool in text.tools else part.arguments
            for name in part.arguments:
                if name not in arguments:
                    message = f"{tool} has no argument {name!r}{_near(name, arguments)}"
                    yield Finding((*at, "with"), message)
                if isinstance(part, WantedCall):
                    yield from _condition((*at, "with", name), part.arguments[name])


def _pattern(at: Keypath, pattern: str, text: EvalText) -> Iterator[Finding]:
    """Yield a problem for a pattern that matches no tool name."""
    if not any(fnmatchcase(name, pattern) for name in text.tools):
        yield from _known(at, pattern, text.tools, "tool")


def _condition(at: Keypath, value: Any) -> Iterator[Finding]:
    """Yield a problem for an invalid condition on an argument; a condition with expressions is not checked."""
    if not [*expressions_in(value)]:
        try:
            conditions_in(value)
        except BadInput as error:
            yield Finding(at, str(error))


def _each(at: Keypath, source: str | None, names: Names) -> tuple[Names, list[Finding]]:
    if source is None:
        return names, []
    name, found, items = source.partition(" in ")
    if not found or not name.strip().isidentifier():
        return names, [Finding(at, f"{source!r}: expected 'name in EXPRESSION'")]
    return names | {name.strip()}, list(_values(at, f"={items}", names))


def _known(at: Keypath, name: str, options: Iterable[str], noun: str) -> Iterator[Finding]:
    if name not in options:
        yield Finding(at, f"unknown {noun} {name!r}{_near(name, options)}")


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = suggestion(name, names)
    return f".{near}" if near else f"; available: {', '.join(names) or 'none'}"


EVALS: Final = "evals"


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """The valid evals in some files, and the problems with the others."""

    evals: tuple[EvalScenario, ...]
    problems: tuple[Problem, ...]


def load_paths(paths: Iterable[Path | str]) -> LoadedSuite:
    """Return the evals in the files at or under `paths`, in the order of the files, and all problems.

    In a folder, files that are not eval files are skipped; a path to a file must be an eval file.
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
    """Return the evals at or under `paths`; raises `BadScenario` with one `path:line: message` per problem."""
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
            yield located(path, root, Finding((key,), f"unknown key {key!r}, expected only 'evals'"))
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
        scenario = EvalScenario.placed(text, path, node.line)
        broken = _begins(scenario)
        if broken is None:
            yield scenario
            return
        wrong = [Finding((), broken)]
    yield from sorted(
        located(path, root, Finding((*at, *finding.keypath), f"eval {label!r}: {finding.message}"))
        for finding in wrong
    )


@cache
def _schema() -> Schema:
    return evals_schema()


def _options(keypath: Keypath) -> tuple[str, ...]:
    return options_of(_schema(), keypath)


def _begins(scenario: EvalScenario) -> str | None:
    """Return why an eval cannot be instantiated, or None if it can."""
    try:
        scenario.instance(0)
    except (BadInput, LookupError) as error:
        return f"its world cannot be created: {error}"
    return None
