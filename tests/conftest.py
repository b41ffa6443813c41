"""Puts tests/ on the path, so that tests share the plain references in tests/support."""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# A shell may start tests in the background with SIGINT ignored; those about Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)
