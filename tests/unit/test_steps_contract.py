"""The checker of step enforcers: ours passes, and every planted fault is told by its shortest order of acts."""

from __future__ import annotations

import subprocess

import pytest

from bench.agent_forge_setup import forge_python
from statek_sim.agent.steps.contract import Feature, step_enforcer_findings
from statek_sim.agent.steps.enforcement import StepPlan
from statek_sim.agent.steps.expected import Finding
from statek_sim.checks import check_step_enforcer
from statek_sim.errors import BadInput, ContractViolation
from tests.docs.page import DOCS
from tests.tables import table_test
from tools.step_table import ANY, Ours, Printed, found_in, rows


def test_ours_keeps_the_contract_in_every_order_of_acts() -> None:
    assert check_step_enforcer(Ours, acts=6) > 40_000


# -- planted faults ---------------------------------------------------------------------------------------------


class DoneWhenProposed(Ours):
    """Commits a step before its tool ran."""

    def propose(self, tool: str) -> object | None:
        call = super().propose(tool)
        if call is not None:
            self._enforcer.commit(tool)
        return call

    def finish(self, call: object, *, failed: bool) -> None:
        """Too late."""


class NeverAgain(Ours):
    """Refuses a tool that failed."""

    def __init__(self, plan: StepPlan) -> None:
        super().__init__(plan)
        self._failed: set[str] = set()

    def propose(self, tool: str) -> object | None:
        return None if tool in self._failed else super().propose(tool)

    def finish(self, call: object, *, failed: bool) -> None:
        super().finish(call, failed=failed)
        if failed:
            self._failed.add(str(call))


class ThriceOnly(Ours):
    """Forgets that failures may go on: the fourth try of a tool that failed is refused."""

    def __init__(self, plan: StepPlan) -> None:
        super().__init__(plan)
        self._failed = 0

    def propose(self, tool: str) -> object | None:
        return None if self._failed > 3 else super().propose(tool)

    def finish(self, call: object, *, failed: bool) -> None:
        self._failed += failed
        super().finish(call, failed=failed)


class OnceIsEnough(Ours):
    """Counts a set of tools, so that one that is required twice is done after one call."""

    def __init__(self, plan: StepPlan) -> None:
        super().__init__(plan)
        self._plan = plan
        self._seen: set[str] = set()

    def finish(self, call: object, *, failed: bool) -> None:
        super().finish(call, failed=failed)
        if not failed:
            self._seen.add(str(call))

    def may_answer(self) -> bool:
        return {step.tool for step in self._plan.steps if step.required} <= self._seen


class NoGate(Ours):
    """Lets every answer through."""

    def may_answer(self) -> bool:
        return True


class NoReads(Ours):
    """Refuses whatever is no step."""

    def __init__(self, plan: StepPlan) -> None:
        super().__init__(plan)
        self._steps = {step.tool for step in plan.steps}

    def propose(self, tool: str) -> object | None:
        return super().propose(tool) if tool in self._steps else None


class AnyOrder(Ours):
    """Knows which steps there are and not in which order."""

    def __init__(self, plan: StepPlan) -> None:
        super().__init__(StepPlan(steps=plan.steps, order="any", helpers=plan.helpers))


class AnyHelper(Ours):
    """Lets every helper through, named or not."""

    def __init__(self, plan: StepPlan) -> None:
        super().__init__(StepPlan(steps=plan.steps, order=plan.order))


class RefusalsCount(Ours):
    """Takes a refused proposal for a call that is still out, and an answer has to wait for it."""

    def __init__(self, plan: StepPlan) -> None:
        super().__init__(plan)
        self._waits = False

    def propose(self, tool: str) -> object | None:
        call = super().propose(tool)
        self._waits |= call is None
        return call

    def may_answer(self) -> bool:
        return super().may_answer() and not self._waits


class SameCallTwice(Ours):
    """Takes the end of either of two calls for the end of both."""

    def propose(self, tool: str) -> object | None:
        call = super().propose(tool)
        self._out = getattr(self, "_out", 0) + (call is not None)
        return call

    def finish(self, call: object, *, failed: bool) -> None:
        for _ in range(self._out):
            super().finish(call, failed=failed)
        self._out = 0


class Fragile(Ours):
    """Falls over a call that failed."""

    def finish(self, call: object, *, failed: bool) -> None:
        if failed:
            raise KeyError(call)
        super().finish(call, failed=failed)


@table_test(
    ("make", "sentence"),
    [
        (
            DoneWhenProposed,
            "steps a: a is proposed, the answer is given: "
            "the enforcer let the answer through, but 'a' still has to succeed",
        ),
        (
            NeverAgain,
            "steps a: a is proposed, a fails, a is proposed: "
            "the enforcer refused 'a', but 'a' failed, so that it is still to be done",
        ),
        (
            ThriceOnly,
            "steps a: a is proposed, a fails, a is proposed, a fails, a is proposed, a fails, a is proposed, a fails, "
            "a is proposed: the enforcer refused 'a', but 'a' failed, so that it is still to be done",
        ),
        (
            OnceIsEnough,
            "steps a 2 times: a is proposed, a succeeds, the answer is given: "
            "the enforcer let the answer through, but 'a' has to succeed once more",
        ),
        (
            NoGate,
            "steps a: the answer is given: the enforcer let the answer through, but 'a' still has to succeed",
        ),
        (
            NoReads,
            "steps a: look is proposed: "
            "the enforcer refused 'look', but 'look' is no step and may always be called",
        ),
        (AnyOrder, "steps a, b: b is proposed: the enforcer let 'b' through, but 'a' comes first"),
        (
            AnyHelper,
            "steps a, helpers look: stray is proposed: "
            "the enforcer let 'stray' through, but 'stray' is neither a step nor one of the helpers",
        ),
        (
            RefusalsCount,
            "steps a, helpers look: a is proposed, stray is proposed and is refused, a succeeds, the answer is given: "
            "the enforcer refused the answer, but every required step succeeded",
        ),
        (
            SameCallTwice,
            "steps a 2 times: a is proposed, a is proposed, a succeeds, the answer is given: "
            "the enforcer let the answer through, but 'a' has to succeed once more",
        ),
        (Fragile, "steps a: a is proposed, a fails: the enforcer raised KeyError: 'a'"),
    ],
)
def test_a_planted_fault_is_told_by_its_shortest_order(make: type[Ours], sentence: str) -> None:
    with pytest.raises(ContractViolation) as violation:
        check_step_enforcer(make)
    assert str(violation.value) == sentence


# -- giving up --------------------------------------------------------------------------------------------------


class GivingUp(Ours):
    """Gives up after three refusals in a row."""

    by_kind = False

    def __init__(self, plan: StepPlan) -> None:
        super().__init__(plan)
        self._refusals: dict[str, int] = {}

    def _refused(self, kind: str) -> None:
        key = kind if self.by_kind else ""
        self._refusals[key] = self._refusals.get(key, 0) + 1

    def propose(self, tool: str) -> object | None:
        call = super().propose(tool)
        if call is None:
            self._refused("tool")
        return call

    def may_answer(self) -> bool:
        may = super().may_answer()
        if not may:
            self._refused("answer")
        return may

    def gave_up(self) -> bool:
        return max(self._refusals.values(), default=0) >= 3


class BudgetForEachKind(GivingUp):
    """Counts each kind of failure by itself: a model that alternates between two stays under both."""

    by_kind = True


def test_an_enforcer_may_give_up_after_as_many_refusals_as_it_says() -> None:
    assert check_step_enforcer(GivingUp, gives_up_after=3) > 9_000


def test_alternating_between_two_failures_is_no_way_round_a_budget() -> None:
    with pytest.raises(ContractViolation) as violation:
        check_step_enforcer(BudgetForEachKind, gives_up_after=3)
    assert str(violation.value) == (
        "steps a, b: b is proposed and is refused, the answer is given and is refused, b is proposed and is refused: "
        "the enforcer did not give up after 3 refusals in a row"
    )


def test_an_enforcer_that_gives_up_too_early_is_told_so() -> None:
    with pytest.raises(ContractViolation, match=r"the enforcer gave up after 3 refusals, expected 4$"):
        check_step_enforcer(GivingUp, gives_up_after=4)


def test_giving_up_needs_an_adapter_that_says_so() -> None:
    with pytest.raises(
        BadInput, match=r"^gives_up_after needs an adapter with a method gave_up; .* has none$"
    ):
        check_step_enforcer(Ours, gives_up_after=3)


# -- what is asked, and the page --------------------------------------------------------------------------------


def test_a_plan_that_needs_what_is_not_supported_is_left_out() -> None:
    features = [feature for feature in Feature if feature is not Feature.ANY_ORDER]
    assert Finding.OUT_OF_ORDER in step_enforcer_findings(AnyOrder, supports=features, acts=3)
    assert check_step_enforcer(AnyOrder, supports=ANY) > 1_000


def test_a_feature_that_is_not_there_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"^no feature is called 'orderd': .*Did you mean 'ordered'\?$"):
        check_step_enforcer(Ours, supports=["orderd"])


def test_the_documents_printed_enforcer_is_told_by_its_shortest_order() -> None:
    with pytest.raises(ContractViolation) as violation:
        check_step_enforcer(lambda plan: Printed(plan, gated=True), supports=["ordered"])
    assert str(violation.value) == (
        "steps a: a is proposed, the answer is given: "
        "the enforcer let the answer through, but 'a' still has to succeed"
    )
    assert Finding.NO_SECOND_TRY in found_in("the same with a gate before the answer")()


def test_the_page_shows_what_is_found() -> None:
    page = (DOCS / "bring-your-own-harness.md").read_text("utf-8")
    assert "\n".join(row for row in rows() if not row.startswith("| Forge")) in page


@pytest.mark.slow
def test_the_page_shows_what_is_found_in_forges_enforcer() -> None:
    command = [str(forge_python()), "-W", "ignore", "-m", "tools.step_table"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=DOCS.parent)
    assert told.stdout.splitlines()[-1] in (DOCS / "bring-your-own-harness.md").read_text("utf-8")


def test_an_adapter_that_lacks_methods_is_told_which() -> None:
    class Half:
        def may_answer(self) -> bool:
            return True

    said = (
        r"^the adapter Half has no propose and no finish; expected the methods of EnforcerAdapter: propose, "
    )
    with pytest.raises(BadInput, match=said):
        check_step_enforcer(lambda plan: Half())  # type: ignore[arg-type,return-value]
