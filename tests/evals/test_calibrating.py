"""Calibration: recordings of a simulated model whose rates are known give these rates back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from statek_sim.agent.effects import Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.reliability import rescued
from statek_sim.agent.replies.reading import read_model_reply
from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cli.app import app
from statek_sim.errors import BadInput
from statek_sim.evals.calibrating import Calibrated, calibrated, calibrated_on
from statek_sim.evals.models.failures import FailureClass
from statek_sim.evals.models.noticing import RecordedTurn, noticed
from statek_sim.evals.models.profile import HEEDS, Profile
from statek_sim.evals.models.profile_file import load_profile
from statek_sim.evals.models.weak import Act, WeakModel, WeakProvider
from statek_sim.evals.task import EvalTask
from statek_sim.providers.protocol import ChatRequest, RawReply
from tests.evals.weak_models import failing, suite

BASE = "gemma-4-31b-it"


class Recording:
    """A provider that keeps what another one was asked, and what it said."""

    def __init__(self, inner: WeakProvider) -> None:
        self._inner = inner
        self.exchanges: list[Exchange] = []
        self.turns: list[RecordedTurn] = []

    @property
    def acts(self) -> list[Act]:
        return self._inner.acts

    def complete(self, request: ChatRequest) -> RawReply:
        raw = self._inner.complete(request)
        self.turns.append(
            RecordedTurn(
                messages=tuple(request.messages),
                tools=request.tools,
                reply=read_model_reply(raw.body, "openai"),
            )
        )
        self.exchanges.append(
            Exchange(
                request=Request(
                    method="POST",
                    uri="https://llm.invalid/v1/chat/completions",
                    headers=(("content-type", "application/json"),),
                    body=json.dumps(request.body()).encode(),
                ),
                response=Response(status=200, headers=(("content-type", "application/json"),), body=raw.body),
            )
        )
        return raw


def recorded(profile: Profile, seeds: int = 2) -> list[Recording]:
    """Let a model work on the shorter evals under a full harness."""
    found = []
    for scenario in suite()[:12]:
        for seed in range(seeds):
            instance = scenario.instance(seed)
            provider = Recording(WeakModel(profile, seed).provider(EvalTask(instance), tier=scenario.tier))
            agent = AgentHarness(
                provider,
                tools=instance.tools,
                steps=instance.steps,
                prompt=instance.prompt,
                parts=Parts(reader=rescued),
            )
            agent.run(instance.task)
            found.append(provider)
    return found


def fitted_to(profile: Profile) -> Calibrated:
    turns = [turn for one in recorded(profile) for turn in one.turns]
    return calibrated_on(
        list(noticed(turns)), name="mine", model="m", base=load_profile(BASE), source="recordings"
    )


@pytest.mark.parametrize(
    ("failure", "rate"),
    [
        (FailureClass.MALFORMED, 0.4),
        (FailureClass.MISSING_ARGUMENT, 0.3),
        (FailureClass.EARLY_ANSWER, 0.3),
    ],
)
def test_a_rate_that_recordings_show_is_found_within_its_interval(failure: FailureClass, rate: float) -> None:
    profile = failing(failure, rate=rate, heeds=0.7)
    found = fitted_to(profile)
    (class_,) = [one for one in found.profile.classes if one.failure is failure]
    assert class_.interval is not None
    # Turns that end a task are turns too, in which these classes never act: what counts is how often they did act.
    acts = [act for one in recorded(profile) for act in one.acts if not act.corrected]
    acted = sum(act.failure is failure for act in acts) / len(acts)
    assert 0 < acted <= rate
    assert class_.interval[0] <= acted <= class_.interval[1]
    others = [
        one.mean
        for one in found.profile.classes
        if one.origin.kind == "fitted" and one.failure is not failure
    ]
    assert max(others) < 0.05
    assert found.profile.rates[HEEDS].origin.kind == "fitted"
    low, high = found.profile.rates[HEEDS].interval or (0, 0)
    assert low <= 0.7 + 0.3 * (1 - rate) + 0.05
    assert high >= 0.7


def test_what_recordings_do_not_show_is_taken_over_and_called_assumed() -> None:
    found = fitted_to(failing())
    unseen = {one.failure for one in found.profile.classes if one.origin.kind == "assumed"}
    assert unseen == {FailureClass.SKIPPED_STEP, FailureClass.CONTEXT_LOSS}
    assert found.counts[FailureClass.MALFORMED] == 0
    assert found.profile.rates[HEEDS].origin.kind == "assumed"


def test_the_command_reads_cassettes_and_writes_a_profile_that_runs(tmp_path: Path) -> None:
    (tmp_path / "tapes").mkdir()
    for number, one in enumerate(recorded(failing(FailureClass.MALFORMED, rate=0.5), seeds=1)[:6]):
        (tmp_path / "tapes" / f"{number}.yaml").write_text(rendered(one.exchanges), encoding="utf-8")
    file = tmp_path / "mine.toml"
    words = [
        "evals",
        "calibrate",
        "--cassettes",
        str(tmp_path / "tapes"),
        "--write",
        str(file),
        "--base",
        BASE,
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "malformed: " in done.output
    told = load_profile(str(file))
    assert (told.name, told.model) == ("mine", "gpt-4o")
    assert {one.failure for one in told.classes} == set(FailureClass)
    # Its own profile it writes anew, and one that has become somebody's own it does not.
    assert CliRunner().invoke(app, words).exit_code == 0
    own = file.read_text("utf-8").partition("\n")[2]
    file.write_text(own, "utf-8")
    refused = CliRunner().invoke(app, words).exception
    assert str(refused) == f"{file}: is there already, and was not written by this command; name another file"
    assert file.read_text("utf-8") == own


@pytest.mark.parametrize("text", ["", "version: 1\ninteractions: []\n"])
def test_recordings_without_a_turn_of_an_agent_are_refused(tmp_path: Path, text: str) -> None:
    if text:
        (tmp_path / "one.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"no cassettes in this folder|expected recordings of an agent"):
        calibrated(tmp_path, name="mine", base=load_profile(BASE))
