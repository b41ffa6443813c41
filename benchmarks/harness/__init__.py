"""Runs of suites: plan, workers, store, resume."""
