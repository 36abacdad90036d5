"""How much work a stretch of model-written code is, counted before it runs.

A loop of one line and a loop of twenty pay differently for a pass. What runs from end to end without a choice is one
stretch: the body of a loop or function, or a long branch. Its steps are added up once, when the code is compiled, and
paid for at its start.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Final

STEPS_PER_ITERATION: Final = 16
"""Steps that one iteration pays for: about two calls of small functions, or eight operators."""

LONG_BRANCH: Final = 16
"""A branch of so many steps pays for itself, when it is taken; a shorter one is part of what is around it."""

_STEPS: Final[dict[type[ast.AST], int]] = {
    ast.Call: 8, ast.Name: 1, ast.Attribute: 1, ast.BinOp: 3, ast.UnaryOp: 1, ast.AugAssign: 3, ast.Compare: 2,
    ast.Subscript: 2, ast.JoinedStr: 2, ast.FormattedValue: 4, ast.Starred: 3, ast.List: 1, ast.Tuple: 1, ast.Dict: 2,
    ast.Set: 6, ast.ListComp: 6, ast.SetComp: 8, ast.DictComp: 6, ast.GeneratorExp: 10, ast.Lambda: 2,
    ast.FunctionDef: 4, ast.Import: 8, ast.ImportFrom: 8, ast.Raise: 8, ast.Try: 2, ast.For: 3, ast.Assert: 1,
    ast.Assign: 1, ast.Delete: 1, ast.Expr: 1, ast.If: 1, ast.While: 1, ast.Return: 1, ast.Pass: 1,
}  # fmt: skip
_COMPREHENSIONS: Final = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})


class Steps:
    """Counts the steps of one syntax tree, each stretch once. Ask before the tree is changed."""

    __slots__ = ("_branches",)

    def __init__(self) -> None:
        self._branches: dict[int, int] = {}

    def of(self, nodes: Iterable[ast.AST]) -> int:
        """Return the steps of `nodes`, without what pays for itself: loops, functions, long branches."""
        total = 0
        pending: list[Any] = list(nodes)
        while pending:
            node = pending.pop()
            kind = type(node)
            total += _STEPS.get(kind, 0)
            if kind is ast.Name or kind is ast.Constant:
                # Most of all nodes, and nothing below them takes a step.
                continue
            if kind is ast.If:
                pending.append(node.test)
                total += self._if_short(node.body) + self._if_short(node.orelse)
            elif kind is ast.For:
                pending += [node.iter, *node.orelse]
            elif kind is ast.While:
                pending += node.orelse
            elif kind is ast.ExceptHandler:
                total += self._if_short(node.body)
            elif kind is ast.FunctionDef:
                pending += [*node.decorator_list, *node.args.defaults]
            elif kind is ast.Lambda:
                pending += node.args.defaults
            elif kind in _COMPREHENSIONS:
                pending.append(node.generators[0].iter)
            else:
                pending += ast.iter_child_nodes(node)
        return total

    def of_branch(self, branch: list[ast.stmt]) -> int:
        """Return the steps that a branch pays for itself: none if it is short."""
        steps = self._in_branch(branch)
        return steps if steps >= LONG_BRANCH else 0

    def _if_short(self, branch: list[ast.stmt]) -> int:
        steps = self._in_branch(branch)
        return steps if steps < LONG_BRANCH else 0

    def _in_branch(self, branch: list[ast.stmt]) -> int:
        found = self._branches.get(id(branch))
        if found is None:
            found = self._branches[id(branch)] = self.of(branch)
        return found


def passes(steps: int) -> int:
    """Return how many iterations that many steps cost, at least one."""
    return max(1, -(-steps // STEPS_PER_ITERATION))
