"""Exact methods of ddljs."""
