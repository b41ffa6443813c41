"""From what hunts found to a family: a generator with a size n, and its ratio as a function of n."""
