"""The laboratory: every table and figure of the papers' evaluations, measured again and judged by stated rules."""
