"""Exact methods of comm-contention."""
