"""Prove evals: the ideal plan passes, and wrong scripts fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.evals.players import played
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.verdict import Verdict, judge

IDEAL: Final = "ideal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What came of one script on one seed; `script` is "ideal", or the id of a wrong one."""

    script: str
    seed: int
    verdict: Verdict
    model_calls: int

    @property
    def as_it_should(self) -> bool:
        """Whether the ideal script passed with all points, or a wrong one failed."""
        if self.script == IDEAL:
            return self.verdict.passed and self.verdict.score == 1.0
        return not self.verdict.passed


def failure_line(scenario: EvalScenario, proof: Proof) -> str:
    """Return what is wrong with a script that did not come out as it should, with the eval's place."""
    reason = "passes, which it should not" if proof.verdict.passed else "; ".join(proof.verdict.problems)
    place = f"{scenario.path}:{scenario.line}: eval {scenario.id!r}"
    return f"{place}: script {proof.script!r} on seed {proof.seed}: {reason}"


def tells_apart(scenario: EvalScenario, seeds: Iterable[int] = (0,)) -> list[str]:
    """Return what is wrong with an eval's scripts, a line each; nothing where it tells right from wrong."""
    return [failure_line(scenario, proof) for proof in proofs(scenario, seeds) if not proof.as_it_should]


def proofs(scenario: EvalScenario, seeds: Iterable[int]) -> Iterator[Proof]:
    """Play an eval's scripts in the loop of engine agent, on these seeds; `BadInput` for one that cannot be played."""
    for seed in seeds:
        for script in (IDEAL, *[wrong.id for wrong in scenario.text.wrong]):
            instance = scenario.instance(seed)
            plan = instance.plan if script == IDEAL else instance.plan_of(script)
            try:
                record = played(instance, plan)
            except BadInput as error:
                raise BadInput(
                    f"{scenario.path}:{scenario.line}: eval {scenario.id!r}: script {script!r} on seed {seed}: {error}"
                ) from None
            yield Proof(
                script=script, seed=seed, verdict=judge(instance, record), model_calls=record.model_calls
            )
