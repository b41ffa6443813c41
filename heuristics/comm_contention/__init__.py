"""Policies of comm-contention: how many may transfer at once."""
