"""The `memsvc` command."""
