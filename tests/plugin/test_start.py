"""What a test loads that uses a fixture: its share of starting up, which every save of a file pays."""

from __future__ import annotations

import pytest

from tests.tables import table_test

RUN = """
    from statek_sim import Agent, code
    statek_llm.script(worker=[code("exit('done')")])
    statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
"""
AGENT = """
    def look(item: str) -> str:
        "Count an item."
        return item + ": 3"

    from statek_sim import text, tool_call
    assert statek_agent(tools=[look], script=[tool_call("look", item="nut"), text("3")]).run("How many?").answer == "3"
"""
GUEST = """
    from statek_sim import text
    assert statek_guest(script=[text("3")]).ask([{"role": "user", "content": "How many?"}])["content"] == "3"
"""
SERVER = """
    from statek_sim.cassettes import secret_patterns
    assert not secret_patterns.shapes.cache_info().misses, "the shapes of secrets were compiled"
"""
HEAVY = (
    "statek_sim.scenario.",
    "statek_sim.cassettes.scan",
    "statek_sim.gate",
    "statek_sim.evals",
    "statek_sim.suite.run",
)


@table_test(
    ("fixtures", "body", "most"),
    [
        ("statek_runtime, statek_llm", RUN, 120),
        ("statek_agent", AGENT, 90),
        ("statek_guest", GUEST, 78),
        ("statek_llm_server", SERVER, 60),
    ],
)
def test_a_fixture_loads_what_it_uses(pytester: pytest.Pytester, fixtures: str, body: str, most: int) -> None:
    pytester.makepyfile(
        "import sys\n\n"
        f"def test_it({fixtures}):\n{body}\n"
        "    ours = [name for name in sys.modules if name.startswith(('statek_sim', 'pytest_statek'))]\n"
        f"    assert not [name for name in ours if name.startswith({HEAVY!r})]\n"
        f"    assert len(ours) <= {most}\n"
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)
