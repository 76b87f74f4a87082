"""Implementations of the ports: SQLite, vector indexes, the embedding model, importers."""
