"""`python -m memsvc` is the `memsvc` command."""

from memsvc.entrypoints.cli.main import main

main()
