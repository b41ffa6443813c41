"""Certificates as files of VIPR 1.0, which checkers of others read: written, and compared with an instance."""
