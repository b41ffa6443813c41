"""What every heuristic shares: the form of its answer, its options, its guarantee."""
