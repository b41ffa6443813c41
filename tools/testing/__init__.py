"""What the gate asks of this package's problems, methods and engines, as functions for those of other packages."""
