"""Two small scenarios that tell releases apart, for the tests of drift reports."""

from __future__ import annotations

from pathlib import Path

from statek_sim.compare.changes import side_named
from statek_sim.compare.upgrade import Upgrade, upgrade_between
from tests.unit.suite_samples import load

CHAT = """\
  - id: chat
    title: A chat of four messages
    agents: {shop: {dialog: true, chat_style: DIRECT, warmup: 'print("open")'}}
    jobs: {main: {message: one}}
    script: {shop: [{text: Fine., repeat: forever}]}
    events:
      - {at: 1, push: main, message: two}
      - {at: 2, push: main, message: three}
      - {at: 3, push: main, message: four}
"""
"""From 1.3 the harness stops it at its fourth message."""

SILENT = """\
  - id: silent
    title: Two silent turns and a failing one
    limits: {max_turns: 9, max_exceptions: 2, max_consecutive_exceptions: 2}
    agents: {clerk: {chat_style: MARKDOWN}}
    script: {clerk: [{code: a = 1}, {code: b = 2}, {code: 1 / 0}, {code: exit('done')}]}
"""
"""In 1.2.5 all three turns fail."""

TOOLS = """\
  - id: tools
    title: All tools are offered
    agents: {clerk: {chat_style: MARKDOWN, tools_scope: ALL}}
    script: {clerk: [{code: exit('done')}]}
"""
"""From 1.3 on its requests have another size."""

PLAIN = """\
  - id: plain
    title: One reply
    agents: {clerk: {chat_style: MARKDOWN}}
    script: {clerk: [{code: exit('done')}]}
"""
"""The same everywhere."""


def report_of(
    folder: Path,
    before: str,
    after: str,
    *,
    preset: str = "default",
    text: str = CHAT + SILENT + TOOLS + PLAIN,
) -> Upgrade:
    """Return the report about these scenarios."""
    return upgrade_between(side_named(before), side_named(after), load(folder, text), preset)
