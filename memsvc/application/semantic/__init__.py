"""Semantic search: indexing in the background, and the nearest records to a text."""
