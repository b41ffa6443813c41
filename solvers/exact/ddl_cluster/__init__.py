"""Exact methods of ddl-cluster."""
