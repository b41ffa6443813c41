"""The papers' algorithms and baselines: one folder per problem, one file per algorithm."""
