"""The use cases: search, timeline, recent context, reading, writing, status."""
