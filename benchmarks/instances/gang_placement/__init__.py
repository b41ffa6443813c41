"""Instances of gang-placement."""
