"""Speed against the naive form, one file a problem."""
