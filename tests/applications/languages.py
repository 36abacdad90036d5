"""A front desk that answers in the language of its guests."""
# mypy: ignore-errors

import pytest
from statek import create_new_job
from statek.agents import DialogAgent, SupervisedAgent
from statek.locale import (
    StatekCountryCode,
    StatekLangCode,
    StatekLocale,
    get_language_hint,
    get_language_rule,
    resolve_locale,
)
from statek.prompt_config import make_system_prompt

from statek_sim import text


def send(body, media=None):
    """Answer."""


def host(**metadata):
    agent = DialogAgent(send, role="host", _metadata={"MODEL": "openai/gpt-4o", **metadata})
    agent.update_system_prompt(make_system_prompt("You welcome guests."))
    return agent


def clerk(prompt="You file.", **metadata):
    return SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt(prompt),
        _tools=[],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


@pytest.mark.parametrize("code", ["PL-PL", "en-gb", "JA-JP", "FR-CA", "DE-AT", "ES-MX", "IT-CH"])
def test_a_dialog_in_a_language(statek_app, facts, code):
    statek_app.script(host=[text("Hello."), text("Bye.")])
    job = create_new_job(host(), locale=resolve_locale(code))
    job.push_user_message("Good morning")
    statek_app.run()
    job.push_user_message("Thanks")
    statek_app.run()
    facts["locale"] = [str(job.job_def.locale.lang_code), str(job.job_def.locale.country_code)]
    facts["sent"] = [list(request.messages) for request in statek_app.requests]


@pytest.mark.parametrize("metadata", [{"AUTO_LANG_RULE": "false"}, {"AUTO_LANG_HINT": "False"}], ids=str)
def test_what_is_added_may_be_left_out(statek_app, facts, metadata):
    statek_app.script(host=[text("Hello.")])
    job = create_new_job(host(**metadata), locale=resolve_locale("PL-PL"))
    job.push_user_message("Dzień dobry")
    statek_app.run()
    facts["sent"] = [list(request.messages) for request in statek_app.requests]


def test_a_job_that_talks_to_nobody(statek_app, facts):
    statek_app.script(clerk=["print('x')", "exit(1)"])
    create_new_job(clerk(), locale=resolve_locale("EN-US"))
    statek_app.run()
    facts["sent"] = [list(request.messages) for request in statek_app.requests]


def test_a_text_is_no_locale(statek_app, facts):
    job = create_new_job(clerk(), locale="pl")
    statek_app.run()
    facts["status"] = [str(job.status), job.error is not None]


def test_jobs_of_one_locale_share_a_definition(statek_app, facts):
    agent, locale = clerk(), resolve_locale("PL-PL")
    jobs = [create_new_job(agent, locale=locale) for _ in range(2)]
    jobs.append(create_new_job(agent, locale=StatekLocale(StatekLangCode.PL, StatekCountryCode.PL)))
    jobs.append(create_new_job(agent, parent_job=jobs[0]))
    for job in jobs:
        job.job_def.set_error(ValueError("no"))
    facts["errors"] = [len(list(job.job_def.get_errors())) for job in jobs]


def test_locales(statek_app, facts):
    facts["same"] = resolve_locale("PL-pl") is resolve_locale("pl-PL")
    facts.attempt("no country", lambda: resolve_locale("PL"))
    facts.attempt("no language", lambda: resolve_locale("XX-PL"))
    facts["rules"] = [get_language_rule(code) for code in (StatekLangCode.PL, "EN", "JA")]
    facts["hints"] = [get_language_hint(code) for code in (StatekLangCode.PL, "EN", "JA")]
    facts["languages"] = [str(code) for code in StatekLangCode.values()]
    facts["countries"] = [str(code) for code in StatekCountryCode.values()]
