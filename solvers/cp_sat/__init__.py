"""CP-SAT: models solved under limits, in a process whose crashes are survived."""
