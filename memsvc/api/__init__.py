"""The table of operations and what is generated from it: help, OpenAPI, MCP tools, skill pages."""
