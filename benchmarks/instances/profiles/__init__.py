"""Measured tables that generators and importers draw from."""
