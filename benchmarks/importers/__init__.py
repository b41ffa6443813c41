"""Importers of real traces: one file per format."""
