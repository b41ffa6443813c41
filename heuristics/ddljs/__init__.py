"""Algorithms of ddljs and their guarantees."""
