"""The exhaustive search and its instances, which the suite ``cross`` uses too."""

from oracles.rar_ddls import brute_force, placements, random_case, random_tiny, rate

__all__ = ["brute_force", "placements", "random_case", "random_tiny", "rate"]
