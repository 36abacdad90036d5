"""What the agents of a scenario remember: instructions among its files, and a handoff file (004 §7)."""

from __future__ import annotations

from statek_sim.agent.memory.handoff import HandoffFile, memory_block
from statek_sim.agent.memory.instructions import discover, instructions_block
from statek_sim.errors import BadInput, BadStore
from statek_sim.scenario.agent import LayersText
from statek_sim.store.simulated_disk import SimulatedDisk


def project_layer(text: LayersText) -> str:
    """Return the project layer: what is said, then the files that hold for the folder."""
    if not text.files:
        return text.project
    content = {path: file_text.encode() for path, file_text in text.files.items()}
    return instructions_block(discover(content.get, text.folder, own=text.project))


def session_layer(text: LayersText) -> str:
    """Return the session layer: what is said, then the memory block of the handoff file."""
    if not text.handoff:
        return text.session
    content = text.files.get(text.handoff)
    if content is None:
        raise BadInput(f"layers.handoff: {text.handoff!r} is none of `files`")
    return "\n\n".join(filter(None, (text.session, _block(content))))


def _block(content: str) -> str:
    disk = SimulatedDisk({"handoff.json": content.encode()})
    try:
        handoff = HandoffFile(disk, wall=lambda: "", path="handoff.json").resume()
    except BadStore as error:
        raise BadInput(f"layers.handoff: {error}") from error
    return "" if handoff is None else memory_block(handoff)
