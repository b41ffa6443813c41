"""Algorithms of hadar: primal-dual online, round-based, HadarE, and the rivals Gavel, Tiresias, YARN-CS."""
