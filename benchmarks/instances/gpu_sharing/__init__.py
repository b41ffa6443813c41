"""Instances of gpu-sharing."""
