"""How people name things: commits, issues, versions."""
