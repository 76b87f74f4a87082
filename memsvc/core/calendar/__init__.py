"""Stretches of time, and dates in English words."""
