"""Exhaustive search on tiny instances, one file a problem."""


class TooManyError(RuntimeError):
    """An exhaustive search would have more to go through than it is allowed to."""
