"""Instances of ddl-cluster."""
