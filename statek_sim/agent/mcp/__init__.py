"""Tools from MCP servers: which servers, what tools are called, what results and failures are to a model."""
