"""Readers of other formats, and `ingest`, which writes what they read into a store."""
