"""Suites of runs: what they consist of, and their tables."""
