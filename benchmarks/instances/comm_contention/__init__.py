"""Instances of comm-contention."""
