"""The table of operations and what is made from it: help, OpenAPI, MCP tools, skill pages."""
