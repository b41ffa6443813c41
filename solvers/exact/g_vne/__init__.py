"""Exact methods of g-vne."""
