"""Listings of Slurm read: its queue and its nodes."""
