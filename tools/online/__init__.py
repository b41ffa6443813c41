"""Schedulers that do not see the future: the loop that reveals an instance, and policies for it."""
