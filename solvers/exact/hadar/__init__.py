"""Exact methods of hadar."""
