"""Vector indexes, one module each; the table is in `memsvc.configuration.indexes`."""
