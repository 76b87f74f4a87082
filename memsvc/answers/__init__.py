"""Answers: pages, rows, snippets, token budgets, text."""
