"""The command line: one file per group of commands, each loaded when it is used."""
