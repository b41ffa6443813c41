"""Adversarial search for instances on which a heuristic is far from the optimum or a claim fails."""
