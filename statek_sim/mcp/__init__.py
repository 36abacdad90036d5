"""An MCP server for tests: its tools, its faults, its journal. Transports are shells around it."""
