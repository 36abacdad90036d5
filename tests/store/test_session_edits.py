"""Checkpoints that were edited by hand, taken up again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statek_sim import AgentHarness, FunctionLLM, text, tool_call
from statek_sim.checkpoints import Keeper, MemoryAnchor, SessionStore, accept_edits
from statek_sim.errors import Damaged, Held
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply
from statek_sim.store import open_store

KEY = b"sixteen bytes, or more"


class Killed(BaseException):
    pass


def look(at: str) -> str:
    """Look at a page."""
    return f"{at} is empty"


def think(request: ChatRequest) -> Reply:
    if len(request.messages) > 1:
        raise Killed
    return tool_call("look", at="page 1")


def tell(request: ChatRequest) -> Reply:
    return text(str(request.messages[-1]["content"]))


def sessions(folder: Path, **made: Any) -> SessionStore:
    return SessionStore(open_store(f"files:{folder}"), **made)


def begun(folder: Path, model: Callable[[ChatRequest], Reply] = think, **made: Any) -> str | None:
    """Run a session in one process; return its answer, None if the process was killed."""
    store = sessions(folder, **made)
    agent = AgentHarness(FunctionLLM(model), tools=[look])
    keeper = Keeper(store, "book", worker="w", plan=agent.plan("Read."))
    try:
        return agent.run("Read.", keeper=keeper).answer
    except Killed:
        return None
    finally:
        keeper.release()


def edit(folder: Path, number: int, old: str, new: str) -> None:
    (file,) = folder.glob(f"book/checkpoints/cp-{number:04}.json*")
    content = file.read_text("utf-8")
    assert old in content
    file.write_text(json.dumps(json.loads(content.replace(old, new)), indent=2), "utf-8")


@pytest.mark.parametrize("made", [{}, {"key": KEY}, {"key": KEY, "anchor": MemoryAnchor()}])
def test_an_edited_checkpoint_is_refused_until_its_diff_is_accepted(
    tmp_path: Path, made: dict[str, Any]
) -> None:
    assert begun(tmp_path, **made) is None
    store = sessions(tmp_path, **made)
    newest = store.numbers("book")[-1]
    edit(tmp_path, newest, "page 1 is empty", "page 1 is full")
    with pytest.raises(Damaged, match="does not match what was saved"):
        begun(tmp_path, tell, **made)
    seen: list[str] = []

    def refuses(diff: str) -> bool:
        seen.append(diff)
        return False

    assert accept_edits(store, "book", worker="me", agrees=refuses) is False
    with pytest.raises(Damaged):
        store.latest("book")
    assert accept_edits(store, "book", worker="me", agrees=lambda diff: True) is True
    assert seen[0].startswith(f"--- the last intact checkpoint\n+++ checkpoint {newest}, edited\n")
    assert [line for line in seen[0].splitlines() if line.startswith("+") and "full" in line]
    assert begun(tmp_path, tell, **made) == "page 1 is full"


def test_an_edit_of_an_earlier_checkpoint_seals_all_after_it_again(tmp_path: Path) -> None:
    begun(tmp_path)
    store = sessions(tmp_path)
    first, *later = store.numbers("book")
    edit(tmp_path, first, '"Read."', '"Read!"')
    seen: list[str] = []

    def agrees(diff: str) -> bool:
        seen.append(diff)
        return True

    assert accept_edits(store, "book", worker="me", agrees=agrees)
    assert f"checkpoint {first}, edited" in seen[0]
    assert f"checkpoint {later[0]}, edited" not in seen[0]
    assert store.latest("book") is not None


def test_without_an_edit_nobody_is_asked(tmp_path: Path) -> None:
    begun(tmp_path)

    def asked(diff: str) -> bool:
        raise AssertionError(diff)

    assert accept_edits(sessions(tmp_path), "book", worker="me", agrees=asked) is False


def test_an_edit_is_not_accepted_while_a_worker_runs_or_with_another_key(tmp_path: Path) -> None:
    begun(tmp_path, key=KEY)
    store = sessions(tmp_path, key=KEY)
    edit(tmp_path, store.numbers("book")[-1], "page 1 is empty", "page 1 is full")
    lease = open_store(f"files:{tmp_path}").claim("book", worker="other", kind="session")
    with pytest.raises(Held):
        accept_edits(store, "book", worker="me", agrees=lambda diff: True)
    open_store(f"files:{tmp_path}").release(lease)
    with pytest.raises(Damaged, match=r"head.json does not match what was saved"):
        accept_edits(sessions(tmp_path), "book", worker="me", agrees=lambda diff: True)


def test_an_edit_that_no_run_can_resume_from_is_refused_and_the_session_released(tmp_path: Path) -> None:
    begun(tmp_path)
    store = sessions(tmp_path)
    newest = store.numbers("book")[-1]
    edit(tmp_path, newest, '"status":"running"', '"status":"walking"')
    for worker in ("me", "you"):
        with pytest.raises(Damaged, match="has an unknown version"):
            accept_edits(store, "book", worker=worker, agrees=lambda diff: True)
