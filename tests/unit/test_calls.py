from __future__ import annotations

from statek_sim.runtime.state.chat_log import CallSpec, CodeBlock


def test_a_block_tells_python_cli_calls_from_the_others() -> None:
    first, cli, last = CallSpec("1", "f"), CallSpec("2", "python_cli"), CallSpec("3", "g")
    block = CodeBlock("x = 1", (first, cli, last))
    assert block.cli_calls == (cli,)


def test_only_the_value_true_hides_a_block() -> None:
    assert CodeBlock("", metadata={"hidden": True}).hidden
    assert not CodeBlock("", metadata={"hidden": 1}).hidden
    assert not CodeBlock("").hidden
