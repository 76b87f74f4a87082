"""memsvc: the memory a coding agent searches."""

__version__ = "0.1.0"
