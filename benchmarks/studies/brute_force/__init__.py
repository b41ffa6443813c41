"""Exhaustive search on tiny instances, one file a problem."""
