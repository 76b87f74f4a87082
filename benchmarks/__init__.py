"""Measurements of memsvc as a user meets it: over HTTP, against a worker in its own process."""
