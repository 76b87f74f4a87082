"""Keeps what is private or secret out of the store, and removes what the user wants forgotten."""
