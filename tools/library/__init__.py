"""The library of frozen instances: its records, what improves them, its pages."""
