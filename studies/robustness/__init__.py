"""Limits kept, processes killed, input mutated: what must never happen, tried many times."""
