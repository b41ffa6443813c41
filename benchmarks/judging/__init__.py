"""What claims say of a run, and the verdicts of the ledger that ships."""
