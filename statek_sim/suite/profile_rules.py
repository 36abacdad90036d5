"""The rules on which behaviour profiles differ, with the sentence that documents each."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise

from statek_sim import semantics
from statek_sim.semantics import PROFILES, Profile


@dataclass(frozen=True, slots=True)
class ProfileRule:
    """One rule; `values` are in the order of `PROFILES`, as text."""

    name: str
    doc: str
    values: tuple[str, ...]


def profile_rules() -> tuple[ProfileRule, ...]:
    """Return every rule on which some profiles differ, in the order of `Profile`.

    The sentences are the ones below the fields in `semantics`: they are written down there and nowhere else.
    """
    docs = dict(_field_docs())
    rules = []
    for field in fields(Profile):
        values = tuple(str(getattr(profile, field.name)) for profile in PROFILES.values())
        if field.name != "name" and len(set(values)) > 1:
            rules.append(ProfileRule(field.name, docs.get(field.name, ""), values))
    return tuple(rules)


def _field_docs() -> Iterator[tuple[str, str]]:
    """Yield each field of `Profile` with the text that follows it in the source."""
    module = ast.parse(inspect.getsource(semantics))
    classes = (node for node in module.body if isinstance(node, ast.ClassDef))
    body = next(node.body for node in classes if node.name == Profile.__name__)
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
