"""Experiments whose tables are kept in docs/: each is a module that writes its page anew."""
