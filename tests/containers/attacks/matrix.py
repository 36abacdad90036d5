"""Every attack under every enforcer, and what came of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.agent.containers.program import NOBODY
from tests.containers.attacks.attack import Attack, bad_calls, programs
from tests.containers.attacks.enforcers import Enforcer
from tests.containers.attacks.policies import Call, FixtureDir, MakeAdapter, played
from tests.containers.attacks.scene import Scene

BROKEN: Final = "did not begin"

PASSES_OLD_DOCKER: Final = ("io-uring", "socket-of-virtual-machines")
"""What Docker's own filter lets through before version 25; `Docker` refuses such a daemon unless `oldest` names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One attack under one enforcer. `contained` None: it was not run, and `outcome` says why."""

    name: str
    enforcer: str
    outcome: str
    contained: bool | None


def attacked(attack: Attack, enforcer: Enforcer) -> Row:
    """Run one program under one enforcer."""
    if enforcer.name == "none" and attack.control.startswith("no"):
        return _not_run(attack.name, enforcer, attack.control.removeprefix("no: "))
    with Scene() as scene:
        before = scene.state()
        seen = enforcer.run(attack.program(scene.names), scene.workspace, scene.file, attack.control)
        found = [*seen.over, *scene.evidence(seen.output, before=before, report=seen.report)]
        how = scene.plain(seen.how)
        began = seen.refused or f"BEGAN-{scene.names['NONCE']}" in seen.output
    return _judged(attack.name, enforcer, "; ".join(found), how, began=began)


def _not_run(name: str, enforcer: Enforcer, why: str) -> Row:
    return Row(name=name, enforcer=enforcer.name, outcome=f"not run: {why}", contained=None)


def called(call: Call, name: str, make: MakeAdapter) -> Row:
    """Make one call under a permission policy."""
    wrong = played(make, call)
    return Row(name=call.name, enforcer=name, outcome=wrong or "refused", contained=wrong is None)


def called_inside(call: Call, enforcer: Enforcer) -> Row:
    """Make one call inside an enforcer of programs, by a tool without any check, in a workspace that is prepared."""
    if call.alone:
        return _not_run(call.name, enforcer, "it is about the policy")
    with tempfile.TemporaryDirectory(prefix="statek-fixture-") as folder:
        fixture = FixtureDir(Path(folder))
        fixture.make([*call.setup, *call.swap])
        _hand_over(fixture)
        fixture.watch()
        with open(fixture.base / "outside" / "secret.txt", "rb") as secret:
            source = _source(call, fixture)
            seen = enforcer.run(source, fixture.root, secret.fileno(), "plain")
        harm = fixture.harm(seen.output)
        how = seen.how.replace(str(fixture.base), "")
    began = seen.refused or "BEGAN" in seen.output
    return _judged(call.name, enforcer, harm or "", how, began=began)


def _judged(name: str, enforcer: Enforcer, harm: str, how: str, *, began: bool) -> Row:
    """Return the row of a program; one that never began was held by nothing."""
    if not began and not harm:
        return Row(name=name, enforcer=enforcer.name, outcome=f"{BROKEN}: {how}", contained=None)
    return Row(name=name, enforcer=enforcer.name, outcome=harm or how, contained=not harm)


def _hand_over(fixture: FixtureDir) -> None:
    """Let the program's user own everything, so that nothing but the enforcer keeps it out."""
    fixture.base.chmod(0o755)
    if os.geteuid() == 0:
        for place in (fixture.base, *fixture.base.rglob("*")):
            os.chown(place, NOBODY, NOBODY, follow_symlinks=False)


_DOES: Final = {
    "read_file": "print(open(path).read())",
    "write_file": "open(path, 'w').write(content)",
    "delete_file": "os.unlink(path)",
    "list_directory": "print(os.listdir(path))",
}


def _source(call: Call, fixture: FixtureDir) -> str:
    filled = fixture.filled(call.arguments)
    begins = (
        f"import os\nos.write(1, b'BEGAN ')\npath, content = {filled['path']!r}, {filled.get('content')!r}"
    )
    return f"{begins}\n{_DOES[call.tool]}\n"


def matrix(
    enforcers: Sequence[Enforcer],
    policies: Iterable[tuple[str, MakeAdapter]],
    *,
    chosen: Callable[[str], bool] = lambda name: True,
) -> Iterator[Row]:
    """Yield a row for every chosen attack under every enforcer: programs first, then calls."""
    for attack in programs():
        if chosen(attack.name):
            for enforcer in enforcers:
                yield attacked(attack, enforcer)
    made = list(policies)
    for call in bad_calls():
        if chosen(call.name):
            for name, make in made:
                yield called(call, name, make)
            for enforcer in enforcers:
                yield called_inside(call, enforcer)


def unproven(rows: Iterable[Row]) -> list[str]:
    """Return the attacks that were run without an enforcer and did not work: what held them elsewhere is not shown."""
    return [row.name for row in rows if row.enforcer == "none" and row.contained]


def broken(rows: Iterable[Row]) -> list[Row]:
    """Return the attacks that were meant to be run and did not begin: the enforcer does not work, or the attack."""
    return [row for row in rows if row.outcome.startswith(BROKEN)]


def escapes(rows: Iterable[Row], enforcers: Sequence[str] = ("bubblewrap", "docker")) -> list[Row]:
    """Return the attacks that got out of what nothing may get out of."""
    return [row for row in rows if row.enforcer in enforcers and row.contained is False]
