"""The store and its vectors in one SQLite file."""
