"""The ledger: every claim tried on many instances."""
