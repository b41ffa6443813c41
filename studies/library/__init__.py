"""The maintainers' side of the library: instances, and searches for better solutions of them."""
