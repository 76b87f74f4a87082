"""The entry points: HTTP, command line, MCP, session hook."""
