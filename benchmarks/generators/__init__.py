"""Generators of instances: one file per problem."""
