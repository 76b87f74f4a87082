"""`python -m memsvc` is the `memsvc` command."""

from memsvc.cli import main

main()
