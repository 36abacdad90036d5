"""Our side of the server benchmark: `python -m bench.server_ours PORT ENTRIES` serves until killed."""

from __future__ import annotations

import sys

from bench.server_load import ANSWER, ENTRIES_PER_LOAD, messages
from statek_sim.providers.script import text
from statek_sim.server.llm_server import LLMServer


def main() -> None:
    """Serve the script for the load with this name."""
    port, load = int(sys.argv[1]), sys.argv[2]
    # As aimock's fixtures do, one entry of "different" answers every message that has the word in it.
    different = [text(ANSWER).when("question").forever()]
    known = [text(ANSWER).on(message).forever() for message in messages(ENTRIES_PER_LOAD.get(load, 0))]
    server = LLMServer(port=port)
    server.llm.play(known or different)
    server.llm.warm_up()
    with server:
        server.join()


if __name__ == "__main__":
    main()
