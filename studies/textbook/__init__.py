"""Textbook bounds, sharpened ones, and hypothesis beside ``schedgap.claims``."""
