"""Declarative models."""
