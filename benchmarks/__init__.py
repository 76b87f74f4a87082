"""Benchmarks: memsvc as its users see it, over HTTP, with a worker in its own process."""
