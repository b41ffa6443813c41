"""Instances of hadar."""
