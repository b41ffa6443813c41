"""Changes of a decoded JSON object, for tests of bad input."""

from typing import Any


def put(*path: str | int, value: Any) -> Any:
    """What sets the value at a path."""

    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return change


def drop(*path: str | int) -> Any:
    """What takes away the value at a path."""

    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        del data[path[-1]]

    return change
