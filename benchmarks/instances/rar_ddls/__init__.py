"""Instances of rar-ddls."""
