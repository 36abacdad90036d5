"""A catalogue that is queried in every way: classes, tags, lists, tuples, slices, and what dbzero refuses."""
# mypy: ignore-errors

from dataclasses import dataclass
from datetime import date

import dbzero as db0
import pytest
from statek import create_new_job
from statek.agents import SupervisedAgent
from statek.executors.job import Job
from statek.prompt_config import make_system_prompt
from statek.statek_client_api import StatekClientAPI

Kind = db0.enum("Kind", ["NOVEL", "POEM"])
FOUND = db0.find


class Mixin:
    pass


@db0.memo
@dataclass
class Author:
    name: str


@db0.memo
@dataclass
class Work(Mixin):
    name: str
    year: int = 0


@db0.memo
@dataclass
class Play(Work):
    acts: int = 5


@db0.memo(no_default_tags=True)
@dataclass
class Hidden:
    name: str


@db0.memo(singleton=True)
class Shelf:
    def __init__(self, *kept):
        self.kept = list(kept)


def names(found):
    return sorted(one.name for one in found)


@pytest.fixture
def works(statek_app):
    shaw, blake, hidden = Author("Shaw"), Author("Blake"), Hidden("h")
    pyg, songs, emma, lost = Play("Pygmalion", 1913), Work("Songs"), Work("Emma", 1815), Work("Lost")
    Shelf(shaw, blake, hidden, lost, pyg, songs, emma)
    db0.tags(pyg).add("stage", Kind.NOVEL, db0.as_tag(shaw))
    db0.tags(songs).add(["verse", Kind.POEM], blake)
    db0.tags(emma).add({"prose"}, Kind.NOVEL)
    return {"shaw": shaw, "blake": blake, "hidden": hidden, "emma": emma, "songs": songs}


def test_queries(works, facts):
    shaw, blake = works["shaw"], works["blake"]
    queries = {
        "a class": (Work,),
        "a class that is not stored": (Mixin,),
        "object": (object,),
        "an empty tuple": (Work, ()),
        "only an empty tuple": ((),),
        "an empty list": (Work, []),
        "an empty tuple in a list": (Work, ["verse", ()]),
        "an empty tuple in a tuple": (Work, ("verse", ())),
        "a tuple": (Work, ("stage", Kind.NOVEL)),
        "nested": (Work, [("stage", Kind.NOVEL), "verse"]),
        "no": (Work, db0.no(["stage", Kind.POEM])),
        "an object as a tag": (db0.as_tag(blake),),
        "objects as tags": (Work, [db0.as_tag(shaw), db0.as_tag(blake)]),
        "an object": (Author, shaw),
        "another object": (Work, shaw),
        "without a class tag": (Hidden,),
        "None": (Work, None),
        "only None": (None,),
        "a number": (Work, 3),
        "a bool": (Work, True),
        "a float": (3.5,),
        "a set": (Work, {"stage"}),
        "a dictionary": (Work, {"stage": 1}),
        "a date": (Work, date(2026, 1, 1)),
        "None in a list": (Work, ["stage", None]),
        "no None": (Work, db0.no(None)),
        "a class in a list": ([Work],),
        "another class": (Work, Play),
    }
    for name, query in queries.items():
        facts.attempt(name, lambda query=query: names(FOUND(*query)))
    for name, query in list(queries.items())[-10:]:
        facts.attempt(f"{name}, not read", lambda query=query: type(FOUND(*query)).__name__)


def test_results(works, facts):
    actions = {
        "first": lambda: len(FOUND(Work)[0:1]),
        "last": lambda: [one.name for one in FOUND(Work)[-1:]] == [[*FOUND(Work)][-1].name],
        "step": lambda: len(FOUND(Work)[::2]),
        "all": lambda: names(FOUND(Work)[:99]),
        "backwards": lambda: FOUND(Work)[::-1],
        "item": lambda: FOUND(Work)[0],
        "name": lambda: FOUND(Work)["x"],
        "next": lambda: next(FOUND(Work)),
        "plus": lambda: FOUND(Work) + 1,
        "attribute": lambda: FOUND(Work).first,
        "in": lambda: works["emma"] in FOUND(Work),
        "equal": lambda: FOUND(Work) == FOUND(Work),
        "kind": lambda: [
            type(one).__name__ for one in (FOUND(Work), FOUND(Work)[:1], db0.tags(), Kind, Kind.POEM)
        ],
    }
    for name, action in actions.items():
        facts.attempt(name, action)


def test_tags(works, facts):
    emma, hidden = works["emma"], works["hidden"]
    actions = {
        "a number": lambda: db0.tags(emma).add(5),
        "None": lambda: db0.tags(emma).add(None),
        "a float": lambda: db0.tags(emma).add(1.5),
        "a class": lambda: db0.tags(emma).add(Work),
        "a date": lambda: db0.tags(emma).add(date(2026, 1, 1)),
        "one of two": lambda: db0.tags(emma).add(["q", 5]),
        "kept": lambda: names(FOUND("q")),
        "an object": lambda: (db0.tags(emma).add(works["shaw"]), names(FOUND(db0.as_tag(works["shaw"])))),
        "removed": lambda: (db0.tags(emma).remove(works["shaw"]), names(FOUND(db0.as_tag(works["shaw"])))),
        "of a query": lambda: (db0.tags(FOUND(Author)).add("all"), names(FOUND("all"))),
        "of a number": lambda: db0.tags(5),
        "of None": lambda: db0.tags(None),
        "of a list": lambda: db0.tags([emma]),
        "of a class": lambda: db0.tags(Work),
        "as a tag": lambda: db0.as_tag(5),
        "None as a tag": lambda: db0.as_tag(None),
        "attribute": lambda: db0.tags(emma).first,
        "enumeration called": lambda: Kind("POEM"),
        "hidden": lambda: (names(FOUND(Hidden)), db0.tags(hidden).add("x"), names(FOUND(Hidden))),
        "hidden again": lambda: (
            db0.tags(hidden).remove("x"),
            names(FOUND(Hidden)),
            names(FOUND(Hidden, "x")),
        ),
        "a job": lambda: (
            db0.tags(emma).add(db0.as_tag(_job())),
            names(FOUND(Work, [db0.as_tag(j) for j in FOUND(Job)])),
        ),
    }
    for name, action in actions.items():
        facts.attempt(name, action)


def agent(prompt="Work in {place}."):
    return SupervisedAgent(
        role="worker",
        _system_prompt=make_system_prompt(prompt),
        _tools=[],
        _metadata={"MODEL": "openai/gpt-4o"},
    )


def _job():
    return create_new_job(agent())


def test_definitions_of_jobs(statek_app, facts):
    made = agent()
    warmups = {
        "one": "print(1)",
        "two": "n = 1\nprint(n)\n# ----------\nfor i in range(3):\n    last = i",
        "blank": "  \n",
        "a list": ["a = 1", "", "b = 2"],
    }
    for name, warmup in warmups.items():
        facts.attempt(f"changed by {name}", lambda warmup=warmup: made.update_warmup_def(warmup))
        facts.attempt(f"again by {name}", lambda warmup=warmup: made.update_warmup_def(warmup))
        facts.attempt(name, lambda: _blocks(made.warmup_def.warmup_code))
        facts.attempt(f"{name}, locals", lambda: list(made.referenced_locals))
    made.update_warmup_def(None)
    api = StatekClientAPI()
    facts.attempt(
        "by text",
        lambda: str(api.submit_new_job(made, locale="pl-pl", place="Rome").job_def.locale.lang_code),
    )
    facts.attempt(
        "batch",
        lambda: [len(api.submit_new_jobs_batch(made, [{}, None], locale="EN-GB", place="Bath")), _locales()],
    )
    facts.attempt("no locale", lambda: api.submit_new_job(made, locale="zz", place="Bath"))
    statek_app.script(worker=["exit(1)"] * 3)
    statek_app.run()


def _blocks(code):
    if isinstance(code, str):
        return code
    blocks = [code] if hasattr(code, "tool_calls") else list(code)
    return [
        one
        if isinstance(one, str)
        else [one.code, [call.format() for call in one.tool_calls or ()], dict(one.metadata or {})]
        for one in blocks
    ]


def _locales():
    return sorted(str(job.job_def.locale.lang_code) for job in FOUND(Job))
