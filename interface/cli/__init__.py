"""The command line: one file per group of commands, each loaded when it is used."""

import os


def start() -> int:
    """Run the console script: Ctrl-C while the command line itself is imported ends it in one line, too.

    Returns
    -------
    The exit status, see :func:`schedgap.cli.main.main`; 130 after Ctrl-C.
    """
    try:
        from schedgap.cli.main import main

        return main()
    except KeyboardInterrupt:
        os.write(2, b"schedgap: interrupted\n")
        os._exit(130)
