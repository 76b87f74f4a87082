"""Importing: writing what a reader yields into a store, and the report."""
