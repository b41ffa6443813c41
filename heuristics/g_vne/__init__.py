"""Heuristics of g-vne and their guarantees."""
