"""An MCP server for tests: what it has, what goes wrong with it, what it was asked. Transports are shells around it."""
