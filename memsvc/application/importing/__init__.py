"""Importing: storing what an importer reads, and the report."""
