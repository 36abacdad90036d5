"""An incident log whose tools take members of a stored enumeration."""
# mypy: ignore-errors

from typing import Optional

import dbzero as db0
import pytest
from statek import tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

from statek_sim import tool_call

Severity = db0.enum("Severity", ["INFO", "WARNING", "CRITICAL"])


@db0.enum(values=["OPEN", "CLOSED"])
class State:
    """Where an incident is."""


@db0.memo
class Incident:
    def __init__(self, text, severity):
        self.text = text
        self.severity = severity
        self.state = State.OPEN

    def __llm_repr__(self):
        return f"{self.text} ({self.severity}, {self.state})"


@db0.memo(singleton=True)
class Log:
    def __init__(self):
        self.incidents = []


@tool
def report(text: str, severity: Severity = Severity.INFO, **kwargs):
    """Report an incident.

    Args:
        text (required): What happened.
        severity: How bad it is.
    """
    incident = Incident(text, severity)
    Log().incidents.append(incident)
    return incident


@tool
def change(incident: Incident, state: State, **kwargs):
    """Change an incident."""
    incident.state = state
    return str(state)


@tool
def count(severity: Optional[Severity] = None, **kwargs):
    """Count incidents."""
    return [str(severity), type(severity).__name__ == "EnumValue"]


@tool
def kind(severity: Severity, **kwargs):
    """Tell what came."""
    return [isinstance(severity, str), severity == Severity.INFO, severity in Severity.values()]


def create(**metadata):
    return SupervisedAgent(
        role="watch",
        _system_prompt=make_system_prompt("You watch."),
        _tools=[report, change, count, kind],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


def test_code_names_a_member_by_its_text(statek_app, facts):
    statek_app.script(
        watch=[
            "a = report('disk full', 'CRITICAL')\nprint(a)\nprint(change(a, 'CLOSED'))\nprint(a)",
            "exit(1)",
        ]
    )
    statek_app.create_job(create())
    statek_app.run()
    facts["stored"] = [str(one.severity) for one in Log().incidents]


@pytest.mark.statek(limits={"max_exceptions": 9, "max_consecutive_exceptions": 9})
def test_a_name_that_no_member_has_raises(statek_app, facts):
    statek_app.script(watch=["report('x', 'BAD')", "print(kind('info'))", "print(kind('INFO'))", "exit(1)"])
    statek_app.create_job(create())
    statek_app.run()
    facts["stored"] = len(Log().incidents)


@pytest.mark.statek(limits={"max_turns": 20, "max_exceptions": 9, "max_consecutive_exceptions": 9})
def test_a_text_that_the_store_knows_is_a_value_that_no_member_equals(statek_app, facts):
    statek_app.script(
        watch=[
            "print(kind('OPEN'))",
            "print(report('disk full', 'high'))",
            "print(kind('OPEN'))\nprint(kind('DONE'))\nprint(kind('severity'))",
            "print(kind('Severity'))",
            "print(kind('urgent'))",
            tool_call("report", text="disk full", severity="medium"),
            tool_call("report", text="disk full", severity="text"),
            tool_call("report", text="disk full", severity="full"),
            "exit(1)",
        ]
    )
    statek_app.create_job(create())
    statek_app.run()
    facts["stored"] = [[str(one.severity), one.severity in Severity.values()] for one in Log().incidents]
    facts["equal"] = Log().incidents[0].severity == Severity["high"]
    db0.tags(Log()).add("urgent")
    facts.attempt("a tag", lambda: kind("urgent"))


def test_a_model_names_a_member_in_a_call_of_its_own(statek_app, facts):
    statek_app.script(
        watch=[
            tool_call("report", text="disk full", severity="WARNING"),
            tool_call("report", text="disk full", severity="NOPE"),
            tool_call("kind", severity="INFO"),
            "exit(1)",
        ]
    )
    statek_app.create_job(create(LLM_TOOLS_SCOPE="APPLICATION"))
    statek_app.run()
    facts["stored"] = [str(one.severity) for one in Log().incidents]


def test_optional_members_stay_text(statek_app, facts):
    statek_app.script(watch=["print(count('INFO'))\nprint(count(None))\nprint(count())", "exit(1)"])
    statek_app.create_job(create())
    statek_app.run()


def test_tools_called_by_the_application_convert_too(statek_app, facts):
    facts.attempt("text", lambda: kind("INFO"))
    facts.attempt("member", lambda: kind(Severity.INFO))
    facts.attempt("keyword", lambda: kind(severity="CRITICAL"))
    facts.attempt("wrong", lambda: kind("BAD"))
    facts.attempt("number", lambda: kind(3))


def test_members_behave_as_they_do_in_the_store(statek_app, facts):
    facts["is_enum"] = [db0.is_enum(Severity), db0.is_enum(State), db0.is_enum("x"), db0.is_enum(Incident)]
    facts["is_value"] = [db0.is_enum_value(Severity.INFO), db0.is_enum_value("INFO")]
    facts["values"] = [str(value) for value in Severity.values()]
    facts["repr"] = repr(Severity.INFO)
    facts.attempt("by index", lambda: str(Severity["INFO"]))
    facts.attempt("by number", lambda: str(Severity[0]))
    facts.attempt("unknown", lambda: Severity["BAD"])
    facts.attempt("unknown attribute", lambda: Severity.BAD)
    facts.attempt("length", lambda: len(Severity))
    facts.attempt("equal to text", lambda: Severity.INFO == "INFO")
    facts.attempt("iterated", lambda: [str(value) for value in Severity])
    facts.attempt("hash", lambda: len({Severity.INFO, Severity.INFO, Severity.CRITICAL}))


def test_values_of_an_enumeration_are_variables(statek_app, facts):
    job = statek_app.create_job(create(), shared_vars={"s": Severity.INFO})
    statek_app.script(watch=["print(s)\ns", "print(kind(s))\nprint(f'{s}')", "exit(s)"])
    statek_app.run()
    facts["exit"] = str(job.py_env.exit_status)


def test_a_name_is_an_enumeration_once(statek_app, facts):
    facts["again"] = db0.enum("TwiceMade", ["A", "B"]) is db0.enum("TwiceMade", ["A", "B"])
    for kind, values in {
        "turned": ["B", "A"],
        "fewer": ["A"],
        "more": ["A", "B", "C"],
        "others": ["X"],
    }.items():
        facts.attempt(kind, lambda values=values: repr(db0.enum("TwiceMade", values)))
    facts.attempt("with an id", lambda: repr(db0.enum("TwiceMade", ["X"], type_id="x")))
