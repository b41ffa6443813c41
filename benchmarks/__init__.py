"""The table of problems, generators, importers, suites, runner and store, figures and report."""
