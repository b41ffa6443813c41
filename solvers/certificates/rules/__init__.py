"""What every schedule of a problem satisfies, written for the checker of certificates alone."""
