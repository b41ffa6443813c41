"""Exact methods of gpu-sharing."""
