from __future__ import annotations

from dataclasses import fields, replace

import pytest

from statek_sim.errors import BadInput
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.semantics import DOCS, PROFILES, V1_2, V1_2_5, V1_4, Profile, profile_named
from tests.unit.runtime_samples import idle_runtime


def differing(one: Profile, other: Profile) -> set[str]:
    return {spec.name for spec in fields(Profile) if getattr(one, spec.name) != getattr(other, spec.name)}


def test_profiles_are_known_by_their_own_names_the_default_first() -> None:
    assert list(PROFILES) == ["docs", "1.2.5", "1.2", "1.4"]
    assert all(profile_named(name).name == name for name in PROFILES)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        BadInput, match=r"^profile '1\.3' is unknown; expected one of: docs, 1\.2\.5, 1\.2, 1\.4$"
    ):
        profile_named("1.3")


def test_a_mistyped_profile_gets_a_suggestion() -> None:
    message = (
        r"^profile 'dosc' is unknown; expected one of: docs, 1\.2\.5, 1\.2, 1\.4\. Did you mean 'docs'\?$"
    )
    with pytest.raises(BadInput, match=message):
        profile_named("dosc")


def test_the_documents_differ_from_the_release_in_five_rules() -> None:
    assert differing(DOCS, V1_4) == {
        *("name", "limit_extension", "as_tool_binds_assignment", "prints_stay_apart", "storage"),
    }


def test_every_rule_tells_two_profiles_apart() -> None:
    told = differing(DOCS, V1_2) | differing(V1_2_5, V1_2) | differing(V1_2, V1_4)
    assert told == {spec.name for spec in fields(Profile)}


def test_1_2_5_differs_from_1_2_7_in_how_it_counts_and_in_what_a_message_does_to_it() -> None:
    assert differing(V1_2_5, V1_2) == {
        "name",
        "console_error_belongs_to",
        "harness_error_counts",
        "message_may_end_chat_log",
    }


def test_a_runtime_takes_a_profile_of_ones_own() -> None:
    own = replace(V1_4, name="own", plain_notifications=False)
    job = Runtime(ScriptedLLM([]), profile=own).create_job(Agent("worker"))
    missing = r"^'statek\.executors\.job\.Job' object has no attribute 'send_notification'$"
    with pytest.raises(AttributeError, match=missing):
        job.send_notification("look")


@pytest.mark.parametrize(("profile", "known"), [("1.2", False), ("1.4", True), ("docs", True)])
def test_plain_notifications_exist_from_1_4(profile: str, known: bool) -> None:
    job = idle_runtime(profile).create_job(Agent("worker"))
    if known:
        job.send_notification("look")
        assert len(job.inbox.pending) == 1
    else:
        with pytest.raises(
            AttributeError,
            match=r"^'statek\.executors\.job\.Job' object has no attribute 'send_notification'$",
        ):
            job.send_notification("look")
