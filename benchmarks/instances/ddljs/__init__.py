"""Instances of ddljs."""
