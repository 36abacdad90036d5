"""The data of the page of an experiment: as its schema says, and plain about which model its requests name."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import jsonschema

from statek_sim.agent.budget import Prices
from statek_sim.evals.arms import parse_arms
from statek_sim.evals.experiment import Experiment, run_experiment
from statek_sim.evals.outcome import FailureClass
from statek_sim.evals.summary import summarised
from statek_sim.executors.executor import SerialExecutor
from statek_sim.reporting.page.data import PageData, page_file
from statek_sim.reporting.page.evals import evals_page
from tests.evals.weak_models import eval_named, failing

PRICES = Prices(prompt=Decimal(1), completion=Decimal(2))


def page_of(experiment: Experiment, prices: Prices | None = None) -> PageData:
    outcomes = run_experiment(experiment, SerialExecutor())
    return evals_page(summarised(experiment, outcomes), outcomes, prices)


def simulated(*arms: str, seeds: int = 1) -> Experiment:
    model = failing(FailureClass.EARLY_ANSWER, FailureClass.MALFORMED, rate=0.5)
    return Experiment(suite=(eval_named("weather-now"),), model=model, arms=parse_arms(arms), seeds=seeds)


def check(name: str, found: Any, schema: Any) -> None:
    wanted = {**schema, "$ref": f"#/$defs/{name}"}
    jsonschema.Draft202012Validator.check_schema(wanted)
    jsonschema.Draft202012Validator(wanted).validate(found)


def test_the_data_of_a_page_is_as_its_schema_says() -> None:
    page = page_of(simulated("full", "bare"), PRICES)
    check("index", json.loads(page.index), json.loads(page_file("evals_page_schema.json")))
    assert page.details
    for text in page.details.values():
        cell = json.loads(text)
        check("cell", cell, json.loads(page_file("evals_page_schema.json")))
        for entry in [one for transcript in cell["transcripts"] for one in transcript["entries"]]:
            check("entry", entry, json.loads(page_file("page_schema.json")))


def test_a_page_says_which_model_the_requests_of_a_simulated_one_name() -> None:
    model = json.loads(page_of(simulated("bare")).index)["model"]
    assert (model["name"], model["asks"]) == (simulated("bare").model.name, "gpt-4o")
    assert model["title"].endswith("; its requests name gpt-4o, whose tokenizer counts tokens")
