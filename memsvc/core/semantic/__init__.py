"""Semantic search: the texts to embed for a record, and comparing vectors."""
