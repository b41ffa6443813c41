"""Instances of g-vne."""
