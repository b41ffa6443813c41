"""One file per problem: its row of the table in problems.py, with its presets and importers."""
