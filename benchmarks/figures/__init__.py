"""Figures: one file per problem, and those of the report."""
