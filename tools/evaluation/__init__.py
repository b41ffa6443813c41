"""A foreign scheduler judged: it runs in a process of its own, and everything is measured outside of it."""
