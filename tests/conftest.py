"""Puts tests/ on the path, so that tests share the plain references in tests/support."""

import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# A shell may start tests in the background with SIGINT ignored; those about Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on the clock: a slow machine neither fails an example nor ends the drawing of examples. The examples
# are the same on every run.
settings.register_profile("schedgap", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("schedgap")
