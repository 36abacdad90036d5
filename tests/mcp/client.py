"""Our connection as a program, for the conformance tests of clients: `python -m tests.mcp.client URL`."""

from __future__ import annotations

import asyncio
import sys

from statek_sim.mcp.client import Http, McpServerSpec
from statek_sim.mcp.connection import McpConnection


async def main(url: str) -> int:
    async with McpConnection(McpServerSpec(name="conformance", at=Http(url=url))) as connection:
        for definition in connection.definitions:
            properties = definition.parameters.get("properties", {})
            names = list(properties) if isinstance(properties, dict) else []
            outcome = await connection.call(definition.name, {name: 5 + at for at, name in enumerate(names)})
            print(definition.name, outcome)
            if outcome.failed:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
