"""rar-ddls: ring-all-reduce jobs under link contention (paper 000, SJF-BCO, sections 4 to 7)."""
