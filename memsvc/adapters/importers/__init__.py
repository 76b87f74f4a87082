"""Readers of other formats, one module each; the table is in `memsvc.configuration.importers`."""
