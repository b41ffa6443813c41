"""Exact methods of rar-ddls."""
