"""Exact methods of gang-placement."""
