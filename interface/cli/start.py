"""The console script: Ctrl-C ends it in one line, status 130, also while the command line itself is being imported."""

from __future__ import annotations

import os


def main() -> int:
    """Run the command line; see :func:`schedgap.cli.main.main`."""
    try:
        from schedgap.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        os.write(2, b"schedgap: interrupted\n")
        os._exit(130)
