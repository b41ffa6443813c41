"""Compiled functions: as Python, and their machine code on disk."""
